// Receives every case that spec/clients/app.lua serves, in a browser and under node alike.

const END = "end-of-case";
const LIMIT = 5000; // ms for one case

const note = (event) => ({ type: event.type, data: event.data, id: event.lastEventId });

function receiveCase(EventSource, url, types) {
  return new Promise((resolve, reject) => {
    const events = [];
    const source = new EventSource(url);
    const end = (finish, value) => {
      clearTimeout(timer);
      source.close();
      finish(value);
    };
    const timer = setTimeout(() => end(reject, new Error(url + " does not end")), LIMIT);
    for (const type of new Set(types)) source.addEventListener(type, (event) => events.push(note(event)));
    source.addEventListener(END, () => end(resolve, events));
    source.addEventListener("error", () => end(reject, new Error(url + " broke off")));
  });
}

// The events of every case, in order: { type, data, id } each.
export async function receiveAll(EventSource, origin) {
  const { count, types } = await (await fetch(origin + "/cases")).json();
  const all = [];
  for (let i = 0; i < count; i++) all.push(await receiveCase(EventSource, `${origin}/case/${i}`, types));
  return all;
}

async function parseCase(createParser, url) {
  const events = [];
  const parser = createParser({
    onEvent: ({ event, data, id }) => events.push({ type: event ?? "message", data, id: id ?? "" }),
    onError: (error) => { throw error; },
  });
  const decoder = new TextDecoder();
  for await (const bytes of (await fetch(url)).body) parser.feed(decoder.decode(bytes, { stream: true }));
  if (events.pop()?.type !== END) throw new Error(url + " has no end");
  return events;
}

// The same by a parser of event streams, fed with what fetch reads.
export async function parseAll(createParser, origin) {
  const { count } = await (await fetch(origin + "/cases")).json();
  const all = [];
  for (let i = 0; i < count; i++) all.push(await parseCase(createParser, `${origin}/case/${i}`));
  return all;
}
