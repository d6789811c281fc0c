// Prints what a client from a package makes of every case, as JSON.
// Arguments: the folder the packages are installed in, which client, the server's origin.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [folder, client, origin] = process.argv.slice(2);
const load = createRequire(folder + "/");
const source = readFileSync(new URL("receive.js", import.meta.url));
const { receiveAll, parseAll } = await import("data:text/javascript;base64," + source.toString("base64"));

const clients = {
  "eventsource": () => receiveAll(load("eventsource").EventSource, origin),
  "eventsource-parser": () => parseAll(load("eventsource-parser").createParser, origin),
};
process.stdout.write(JSON.stringify(await clients[client]()));
