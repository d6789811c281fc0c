-- page: the whole page, with nothing to fetch beside it.

return [[
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Chat</title>
<link rel="icon" href="data:,">
<style>
  :root {
    color-scheme: light dark;
    --ground: #f6f5f2; --sheet: #fff; --ink: #1d1c1a; --quiet: #66625b; --line: #d9d5cd; --mark: #0b5fae;
  }
  @media (prefers-color-scheme: dark) {
    :root {
      --ground: #171716; --sheet: #21201f; --ink: #eceae6; --quiet: #a8a39a; --line: #3a3835; --mark: #7db8f0;
    }
  }
  * { box-sizing: border-box; }
  [hidden] { display: none !important; }
  html, body { height: 100%; }
  body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
  main { max-width: 60rem; height: 100dvh; margin: 0 auto; padding: clamp(.75rem, 3vw, 2rem); display: flex;
    flex-direction: column; gap: .75rem; }
  header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem; }
  h1 { font-size: 1.3rem; line-height: 1.2; margin: 0; }
  h2 { font-size: .9rem; margin: 0 0 .3rem; color: var(--quiet); font-weight: 600; }
  nav { display: flex; flex-wrap: wrap; gap: .5rem; }
  button, input, textarea { font: inherit; color: inherit; min-height: 2.75rem; border-radius: .5rem; }
  input, textarea { width: 100%; padding: .6rem .7rem; background: var(--sheet); border: 1px solid var(--line); }
  button { padding: 0 1.2rem; font-weight: 600; cursor: pointer; border: 1px solid var(--mark);
    background: var(--mark); color: var(--sheet); }
  button.plain { background: transparent; color: var(--mark); }
  nav button[aria-pressed=false] { background: transparent; color: var(--mark); }
  :focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
  form { display: flex; gap: .5rem; }
  #enter { max-width: 26rem; flex-wrap: wrap; }
  #enter label { width: 100%; font-weight: 600; }
  #enter input { width: auto; flex: 1; min-width: 10rem; }
  #room { flex: 1; min-height: 0; display: grid; grid-template: 1fr auto / 1fr 12rem; gap: .75rem; }
  #earlier { margin-bottom: .5rem; }
  #pane, aside { background: var(--sheet); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem;
    overflow-y: auto; }
  #log { list-style: none; margin: 0; padding: 0; }
  #log li { padding: .25rem 0; overflow-wrap: anywhere; white-space: pre-wrap; }
  #log b { margin-right: .5rem; }
  #log time { float: right; margin-left: .75rem; color: var(--quiet); font-size: .8rem; }
  #log .note { color: var(--quiet); font-size: .9rem; }
  #members { list-style: none; margin: 0; padding: 0; }
  #members li { overflow-wrap: anywhere; }
  #say { grid-column: 1 / -1; }
  #status { margin: 0; color: var(--quiet); }
  @media (max-width: 40rem) {
    #room { grid-template: auto 1fr auto / 1fr; }
    aside { order: -1; padding: .4rem .75rem; max-height: 5.5rem; }
    #members { display: flex; flex-wrap: wrap; gap: .1rem .8rem; }
  }
</style>
<main>
  <header>
    <h1>Chat</h1>
    <p id="status" role="status">Who are you?</p>
  </header>
  <form id="enter">
    <label for="name">Your name</label>
    <input id="name" maxlength="30" autocomplete="nickname" required>
    <button>Enter</button>
  </form>
  <nav id="rooms" aria-label="Rooms" hidden></nav>
  <section id="room" hidden>
    <div id="pane" tabindex="0">
      <button id="earlier" class="plain" hidden>Earlier</button>
      <ol id="log" aria-live="polite" aria-label="What was said"></ol>
    </div>
    <aside><h2>Here now</h2><ul id="members"></ul></aside>
    <form id="say">
      <input id="text" maxlength="2000" autocomplete="off" required
        aria-label="Your message" placeholder="Say something">
      <button>Send</button>
    </form>
  </section>
</main>
<script>
  const find = id => document.getElementById(id);
  const log = find("log"), pane = find("pane"), status = find("status"), earlier = find("earlier");
  const REPLAYED = 50; // events that the server gives a newcomer
  const wanted = new URLSearchParams(location.search);
  let me = "", room = "", source = null, oldest = null, count = 0;

  const path = what => `/rooms/${encodeURIComponent(room)}/${what}`;

  // One line of the log; texts of others are never markup.
  function line(event, data) {
    const item = document.createElement("li");
    const time = document.createElement("time");
    time.textContent = new Date(data.at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    item.append(time);
    if (event === "message") {
      const who = document.createElement("b");
      who.textContent = data.name;
      item.append(who, data.text);
    } else {
      item.className = "note";
      item.append(`${data.name} has ${event === "join" ? "come" : "gone"}`);
    }
    return item;
  }

  function note(text) {
    const item = document.createElement("li");
    item.className = "note";
    item.textContent = text;
    log.append(item);
  }

  async function showMembers() {
    const here = room, names = await (await fetch(path("members"))).json();
    if (here !== room) return;
    find("members").replaceChildren(...names.map(name => {
      const item = document.createElement("li");
      item.textContent = name;
      return item;
    }));
  }

  function take(message) {
    const isAtEnd = pane.scrollHeight - pane.scrollTop - pane.clientHeight < 60;
    if (!oldest) oldest = message.lastEventId;
    if (++count === REPLAYED) earlier.hidden = false; // there may be more before these
    log.append(line(message.type, JSON.parse(message.data)));
    if (message.type !== "message") showMembers();
    if (isAtEnd) pane.scrollTop = pane.scrollHeight;
  }

  // EventSource comes again by itself, with the id of the last event it has: nothing is missed.
  function enter(name) {
    if (source) source.close();
    room = name;
    oldest = null;
    count = 0;
    log.replaceChildren();
    earlier.hidden = true;
    for (const each of find("rooms").children) each.setAttribute("aria-pressed", each.value === room);
    source = new EventSource(path("events") + "?name=" + encodeURIComponent(me));
    source.onopen = () => {
      status.textContent = `${me} in ${room}`;
      showMembers();
    };
    source.onerror = ({ target }) => {
      status.textContent = target.readyState === EventSource.CLOSED
        ? "The server does not let you in; reload the page to try again."
        : "The connection is lost; trying again…";
    };
    for (const event of ["message", "join", "leave"]) source.addEventListener(event, take);
    source.addEventListener("photon.gap", () => note("Some of what was said here is not kept any more."));
  }

  async function begin(name) {
    me = name.trim();
    if (!me) return;
    find("enter").hidden = true;
    const list = await (await fetch("/rooms")).json();
    find("rooms").replaceChildren(...list.map(each => {
      const button = document.createElement("button");
      button.value = button.textContent = each.name;
      button.onclick = () => { if (room !== each.name) enter(each.name); };
      return button;
    }));
    find("rooms").hidden = find("room").hidden = false;
    enter(list.some(each => each.name === wanted.get("room")) ? wanted.get("room") : list[0].name);
    find("text").focus();
  }

  find("enter").onsubmit = event => {
    event.preventDefault();
    begin(find("name").value);
  };

  find("say").onsubmit = async event => {
    event.preventDefault();
    const text = find("text").value;
    find("text").value = "";
    const reply = await fetch(path("messages"), { method: "POST", headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: me, text }) }).catch(() => null);
    if (reply && reply.ok) return;
    find("text").value = text;
    status.textContent = "That could not be sent.";
  };

  earlier.onclick = async () => {
    const list = await (await fetch(path("history") + "?before=" + oldest)).json();
    earlier.hidden = list.length === 0;
    if (list.length) oldest = list[0].id;
    log.prepend(...list.map(each => line(each.event, each.data)));
  };

  if (wanted.get("name")) begin(wanted.get("name"));
</script>
</html>
]]
