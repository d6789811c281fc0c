"""What the parts of bench/run measure with: servers, their CPU time, clients, tables."""
import contextlib, os, re, statistics, subprocess, sys, time
import http.client, socket

CPUS = sorted(os.sched_getaffinity(0))
SERVER_CPU, CLIENT_CPUS = {CPUS[0]}, set(CPUS[1:]) or set(CPUS)


def on_cpus(cpus):
    return lambda: os.sched_setaffinity(0, cpus)


@contextlib.contextmanager
def awake():
    """Keeps every processor from its idle states by loops that run only when nothing else would: what is
    measured then is a program's own delay, not how long its processor takes to wake up."""
    code = "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"
    loops = [subprocess.Popen([sys.executable, "-c", code], preexec_fn=on_cpus({cpu})) for cpu in CPUS]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def family(pid):
    """The process and all its descendants."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as stat:
                children.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
        except OSError:
            pass
    found = [pid]
    for parent in found:
        found.extend(children.get(parent, []))
    return found


class Server:
    def __init__(self, name, command, port_pattern):
        self.name, began = name, time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=on_cpus(SERVER_CPU))
        line = self.process.stdout.readline()
        self.start_ms = (time.monotonic() - began) * 1000
        found = re.search(port_pattern, line)
        if not found:
            sys.exit(f"bench: {name} did not start: {line!r}")
        self.port = int(found.group(1))

    def cpu(self):
        """CPU so far: seconds, to the nanosecond; and the kernel's sampled ticks in user and system."""
        whole = user = system = 0
        for pid in family(self.process.pid):
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            user, system = user + int(fields[11]), system + int(fields[12])
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat") as stat:
                    whole += int(stat.read().split()[0])
        return whole / 1e9, user, system

    def resident_mb(self):
        total = 0
        for pid in family(self.process.pid):
            with open(f"/proc/{pid}/status") as status:
                total += int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
        return total / 1024

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()


def raw_reply(port, path):
    """The bytes of one reply, as they came."""
    with socket.create_connection(("127.0.0.1", port), 5) as peer:
        peer.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += peer.recv(65536) or sys.exit(f"bench: no reply for {path}")
        length = int(re.search(rb"(?i)content-length: *(\d+)", data).group(1))
        while len(data.split(b"\r\n\r\n", 1)[1]) < length:
            data += peer.recv(65536) or sys.exit(f"bench: short reply for {path}")
        return data


def get(port, path):
    peer = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    peer.request("GET", path)
    reply = peer.getresponse()
    return reply.status, reply.read()


def check_equal(path, servers):
    answers = {server.name: get(server.port, path) for server in servers}
    if len(set(answers.values())) > 1 or any(status != 200 for status, _ in answers.values()):
        sys.exit(f"bench: the answers to {path} differ: {answers}")


def measure(server, command, count):
    """Runs a client; returns microseconds of CPU per thing counted, ticks in user and system, the rate."""
    before, began = server.cpu(), time.monotonic()
    text = subprocess.run(command, check=True, capture_output=True, text=True,
                          preexec_fn=on_cpus(CLIENT_CPUS)).stdout
    after, took = server.cpu(), time.monotonic() - began
    done = count(text)
    if done == 0:
        sys.exit(f"bench: {server.name} served nothing: {' '.join(command)}\n{text}")
    return [(after[0] - before[0]) / done * 1e6, after[1] - before[1], after[2] - before[2], done / took]


def wrk_requests(text):
    if re.search(r"Non-2xx|Socket errors", text):
        sys.exit(f"bench: errors under load:\n{text}")
    return int(re.search(r"(\d+) requests in", text).group(1))


def stream_events(text):
    return int(text.split()[1])


def post(server, path):
    peer = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    peer.request("POST", path)
    reply = peer.getresponse()
    if reply.status not in (200, 204):
        sys.exit(f"bench: POST {path}: {reply.status} {reply.read()}")
    reply.read()


def table(title, unit, rows, base):
    """The whole is a median over the rounds; ticks are too coarse for that, so their sum over all rounds
    tells which part of it was spent in user mode. Last, how often the whole holds that of `base`."""
    print(f"\n{title}\n{'':32}{'server':9}{'user us':>9}{'whole us':>10}{'x ' + base:>10}{unit + '/s':>12}")
    for name, results in rows:
        wholes = {server: statistics.median(sample[0] for sample in samples) for server, samples in results.items()}
        for server, samples in results.items():
            _, users, systems, rates = zip(*samples)
            user = wholes[server] * sum(users) / max(1, sum(users) + sum(systems))
            print(f"{name:32}{server:9}{user:9.2f}{wholes[server]:10.2f}{wholes[server] / wholes[base]:10.2f}"
                  f"{statistics.median(rates):12.0f}")


def interleave(rounds, cases):
    """cases: name -> list of (server, command, counter). Every round visits all of them once."""
    results = {name: {} for name in cases}
    for _ in range(rounds):
        for name, runs in cases.items():
            for server, command, count in runs:
                results[name].setdefault(server.name, []).append(measure(server, command, count))
    return list(results.items())
