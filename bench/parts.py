"""The parts of bench/run. Each starts the servers that it compares, and prints a table."""
import contextlib, os, re, resource, signal, statistics, subprocess, sys, threading, time

from measuring import (CLIENT_CPUS, awake, check_equal, get, interleave, measure, on_cpus, post, raw_reply,
                       stream_events, table, wrk_requests)
from servers import start_bare, start_peers, start_photon


def client(options, name):
    return os.path.join(options.build, "bench", name)


def stop(servers):
    for server in servers:
        server.stop()


def requests(options):
    """Requests, keep-alive, beside a bare server that sends the same bytes."""
    photon, cases = start_photon(options), {}
    bare = {path: start_bare(options, raw_reply(photon.port, path)) for path in ("/", "/users/42")}
    for path in bare:
        check_equal(path, [bare[path], photon])
        for connections in (32, 128):
            cases[f"GET {path}, {connections} connections"] = [
                (server, ["wrk", "-t1", f"-c{connections}", "-d1s", f"http://127.0.0.1:{server.port}{path}"],
                 wrk_requests) for server in (bare[path], photon)]
    table("Requests, keep-alive", "requests", interleave(options.rounds, cases), "bare")
    stop([photon, *bare.values()])


def streams(options):
    """Events in bursts of 100: a stream of its own for each burst (/events), or burst upon burst on open
    streams, as fast as may be (/bursts) or each 2 ms (/paced). The bare server and Go send each event by
    itself; Node and Photon send what was written in one go."""
    servers = [start_photon(options), start_bare(options), *start_peers(options)]
    producers = [server for server in servers if server.name != "bare"]
    check_equal("/events", servers)

    def case(server, path, connections):
        command = [client(options, "stream_client"), str(server.port), path, str(connections), "1"]
        return server, command, stream_events

    cases = {f"/events, {count} connections": [case(server, "/events", count) for server in servers]
             for count in (1, 10, 100)}
    cases.update({f"{path}, {count} connections": [case(server, path, count) for server in producers]
                  for path in ("/bursts", "/paced") for count in (1, 10, 100)})
    table("Events, streams of 100, and bursts of 100", "events", interleave(options.rounds, cases), "photon")
    stop(servers)


def delays(options, server, path, count, seconds, silent=()):
    """A client that reads `count` streams from now on; report() waits for what it says."""
    reader = subprocess.Popen([client(options, "delay_client"), str(server.port), path, str(count), str(seconds),
                               *silent], stdout=subprocess.PIPE, text=True, preexec_fn=on_cpus(CLIENT_CPUS))
    if reader.stdout.readline() != "ready\n":
        sys.exit("bench: the client could not begin")
    return reader


def report(reader, is_one_silent=False):
    """The p50, p99 and longest delay in us that the client has seen."""
    text = reader.communicate()[0]
    if reader.returncode != 0:
        sys.exit("bench: the client failed")
    events, *times, unread = map(float, text.split())
    if events == 0 or (unread > 0) != is_one_silent:
        sys.exit(f"bench: {events:.0f} events came, {unread:.0f} bytes are unread")
    return times


def print_delays(title, results):
    print(f"\n{title}\n{'':32}{'server':12}{'p50 us':>9}{'p99 us':>9}{'longest us':>12}")
    for (name, server), rounds in results.items():
        p50, p99, longest = (statistics.median(column) for column in zip(*rounds))
        print(f"{name:32}{server:12}{p50:9.1f}{p99:9.1f}{longest:12.1f}")


def lone(options):
    """How long after its sending an event that is sent alone can be read: one each 2 ms on each stream; as
    the machine is, when most of it is the waking of processors, and with the processors kept awake."""
    servers, results = [start_photon(options), *start_peers(options)], {}
    for _ in range(options.rounds * options.seconds):
        for state, kept in (("idle", contextlib.nullcontext), ("awake", awake)):
            with kept():
                for count in (1, 100):
                    for server in servers:
                        reader = delays(options, server, "/stamps", count, 1)
                        results.setdefault((f"{count} streams, {state}", server.name), []).append(report(reader))
    print_delays("Lone events, from sending to readable, medians of slices of a second", results)
    stop(servers)


def fanout(options):
    """A delivery of a channel beside a bare send of the same bytes."""
    print("\nDelivery of a channel's event, publishing included")
    sys.stdout.flush()
    subprocess.run([client(options, "fanout")], check=True)


def sockets_mb():
    """What the kernel holds for all TCP sockets of this machine."""
    with open("/proc/net/sockstat") as stat:
        pages = int(re.search(r"TCP:.* mem (\d+)", stat.read()).group(1))
    return pages * resource.getpagesize() / 2**20


def silent(options):
    """What 10,000 subscribers notice of one that never reads, and what it holds."""
    photon, results, kept = start_photon(options), {}, {}
    post(photon, "/news/1000")
    for _ in range(options.rounds):
        for name, extra in (("alone", ()), ("and one silent", ("/news/all", "1"))):
            reader = delays(options, photon, "/news", 10000, options.seconds, extra)
            publisher = threading.Thread(target=post, args=(photon, f"/news/for/{options.seconds - 1}"))
            samples = [(photon.resident_mb(), sockets_mb())]
            publisher.start()
            while publisher.is_alive():
                publisher.join(1)
                samples.append((photon.resident_mb(), sockets_mb()))
            results.setdefault(("10,000 subscribers", name), []).append(report(reader, bool(extra)))
            kept.setdefault(name, []).append([samples[0], samples[1], samples[-1]])
    print_delays("Channel, an event of 1 KB each 500 ms, from publishing to readable", results)
    for name, rounds in kept.items():
        told = [" -> ".join(f"{statistics.median(r[at][which] for r in rounds):.1f}" for at in range(3))
                for which in (0, 1)]
        print(f"{name:16} MB at first, after 1 s, at the end: resident {told[0]}, sockets {told[1]}")
    photon.stop()


def subscribers(options):
    """Memory with 10,000 subscribers of a channel that keeps 1,000 events of 1 KB."""
    photon = start_photon(options)
    post(photon, "/news/1000")
    empty, before = photon.resident_mb(), sockets_mb()
    reader = delays(options, photon, "/news", 10000, 2)
    post(photon, "/news/10")
    print(f"\n10,000 subscribers, 1,000 events kept: {photon.resident_mb():.1f} MB resident "
          f"({empty:.1f} without them), sockets {before:.1f} -> {sockets_mb():.1f} MB")
    report(reader)
    photon.stop()


def idle(options, server, count):
    peer = subprocess.Popen([client(options, "idle_client"), str(server.port), str(count)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    opened = int(peer.stdout.readline().split()[1])
    resident = server.resident_mb()
    peer.stdin.close()
    peer.wait()
    return opened, resident


def memory(options):
    """Start, and resident memory with idle connections, each of which has had one answer: 20,000, or what
    one process may open."""
    counts = (1000, min(20000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100))
    print(f"\nStart and memory\n{'':14}{'ready ms':>9}{'resident MB':>13}" + "".join(
        f"{count:>10,} idle" for count in counts))
    for start in (start_photon, start_bare):
        server = start(options)
        line = f"{server.name:14}{server.start_ms:9.1f}{server.resident_mb():13.1f}"
        for count in counts:
            opened, resident = idle(options, server, count)
            line += f"{resident:10.1f} MB " + ("" if opened == count else f"(only {opened:,} open)")
        server.stop()
        print(line)


def metric(server, name):
    return float(re.search(rf"^{name} (\S+)$", get(server.port, "/metrics")[1].decode(), re.M).group(1))


def reload(options):
    """What reloads cost the worker's loop while clients ask; one that fails ends the benchmark."""
    photon, results = start_photon(options), []
    load = threading.Thread(target=lambda: results.append(measure(
        photon, ["wrk", "-t1", "-c32", "-d5", f"http://127.0.0.1:{photon.port}/users/7"], wrk_requests)))
    load.start()
    count = 0
    while load.is_alive():
        photon.process.send_signal(signal.SIGHUP)
        count += 1
        while metric(photon, "photon_reloads_total") < count:
            time.sleep(0.01)
        time.sleep(0.5)
    if not results:
        sys.exit("bench: a request has failed")
    print(f"\n{count} reloads under load, no request failed ({results[0][3]:.0f}/s); the loop was kept for "
          f"{metric(photon, 'photon_reload_pause_seconds') * 1000:.3f} ms of CPU at most")
    photon.stop()


def router(options):
    """Lookups in tables of 10 to 10,000 routes."""
    print()
    subprocess.run([client(options, "router")], check=True)


ALL = {part.__name__: part for part in (requests, streams, lone, fanout, silent, subscribers, memory, reload,
                                        router)}
