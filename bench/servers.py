"""The servers that bench/run compares: Photon, the bare one, and the peers in bench/peers."""
import os, shutil, subprocess, tempfile

from measuring import Server

HERE = os.path.dirname(os.path.abspath(__file__))


def start_photon(options):
    return Server("photon", [os.path.join(options.build, "photon"), "serve", os.path.join(HERE, "app.lua"),
                             "--listen", "127.0.0.1:0", "--workers", "1"], r"http://127\.0\.0\.1:(\d+)")


def start_bare(options, reply=b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello\n"):
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(reply)
    try:
        return Server("bare", [os.path.join(options.build, "bench", "bare"), file.name], r"(\d+)")
    finally:
        os.unlink(file.name)


def peer_command(options, program):
    """How the peer is started; None, said in a line, where its program is missing."""
    if not shutil.which(program):
        print(f"bench: {program} is not installed; its server is left out")
        return None
    source = os.path.join(HERE, "peers", {"go": "sse.go", "node": "sse.js"}[program])
    if program == "node":
        return [program, source]
    built = os.path.abspath(os.path.join(options.build, "bench", "peer_go"))
    subprocess.run([program, "build", "-o", built, source], check=True, env={**os.environ, "GO111MODULE": "off"})
    return [built]


def start_peers(options):
    commands = {program: peer_command(options, program) for program in ("go", "node")}
    return [Server(program, command, r"(\d+)") for program, command in commands.items() if command]
