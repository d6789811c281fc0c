-- page: the whole page, with nothing to fetch beside it.

return [[
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tokens</title>
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
  body {
    margin: 0; padding: clamp(1rem, 4vw, 3rem); background: var(--ground); color: var(--ink);
    font: 1rem/1.6 system-ui, sans-serif;
  }
  main { max-width: 42rem; margin: 0 auto; }
  h1 { font-size: clamp(1.4rem, 5vw, 2rem); line-height: 1.2; margin: 0 0 1.5rem; }
  label, legend { display: block; font-weight: 600; padding: 0; }
  textarea {
    width: 100%; margin: .4rem 0 1rem; padding: .7rem; font: inherit; color: inherit; resize: vertical;
    background: var(--sheet); border: 1px solid var(--line); border-radius: .5rem;
  }
  .row { display: flex; flex-wrap: wrap; gap: .75rem 1.5rem; align-items: end; justify-content: space-between; }
  fieldset { border: 0; margin: 0; padding: 0; }
  fieldset label { display: inline-flex; gap: .4rem; align-items: center; font-weight: 400; margin-right: 1rem;
    min-height: 2.75rem; }
  button {
    min-height: 2.75rem; padding: 0 1.3rem; font: inherit; font-weight: 600; border-radius: .5rem; cursor: pointer;
    border: 1px solid var(--mark); background: var(--mark); color: var(--sheet);
  }
  button.plain { background: transparent; color: var(--mark); }
  button:disabled { opacity: .45; cursor: default; }
  :focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
  #answer {
    min-height: 12rem; margin: 1.5rem 0 .5rem; padding: 1rem; white-space: pre-wrap; overflow-wrap: anywhere;
    background: var(--sheet); border: 1px solid var(--line); border-radius: .5rem;
  }
  #status { margin: 0; color: var(--quiet); font-variant-numeric: tabular-nums; }
</style>
<main>
  <h1>Tokens, as they are made</h1>
  <form id="form">
    <label for="prompt">Your prompt</label>
    <textarea id="prompt" rows="3" required>Tell me how you work</textarea>
    <div class="row">
      <fieldset>
        <legend>Received by</legend>
        <label><input type="radio" name="by" value="EventSource" checked> EventSource</label>
        <label><input type="radio" name="by" value="fetch"> fetch</label>
      </fieldset>
      <div>
        <button type="button" class="plain" id="stop" disabled>Stop</button>
        <button id="send">Send</button>
      </div>
    </div>
  </form>
  <section id="answer" aria-label="Answer" aria-busy="false" tabindex="0"></section>
  <p id="status" role="status">Ready.</p>
</main>
<script>
  const find = id => document.getElementById(id);
  const answer = find("answer"), status = find("status"), send = find("send"), stop = find("stop");
  let run = null; // what is being received, if anything

  function makeKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, byte => (byte + 256).toString(16).slice(1)).join("");
  }

  // What is under way is remembered until it has ended, so that a reloaded page goes on with it.
  function begin(key) {
    answer.textContent = "";
    answer.setAttribute("aria-busy", "true");
    send.disabled = true;
    stop.disabled = false;
    status.textContent = "Waiting for the first token…";
    return { key, began: performance.now(), first: null, count: 0, cancel: () => {} };
  }

  function take(run, data) {
    run.first ??= performance.now() - run.began;
    run.count++;
    answer.append(JSON.parse(data).text);
  }

  function end(now, word) {
    if (run !== now) return;
    run = null;
    now.cancel();
    sessionStorage.removeItem("answer");
    answer.setAttribute("aria-busy", "false");
    send.disabled = false;
    stop.disabled = true;
    const seconds = ((performance.now() - now.began) / 1000).toFixed(1);
    status.textContent = now.count === 0 ? `${word}.` :
      `${word}: ${now.count} tokens in ${seconds} s, the first after ${Math.round(now.first)} ms.`;
  }

  // A page that is being left loses its connections first, and must not take that for the end.
  const endSoon = (now, word) => setTimeout(() => end(now, word), 200);

  function receiveByEventSource(now, prompt) {
    const source = new EventSource(`answers/${now.key}?prompt=` + encodeURIComponent(prompt));
    now.cancel = () => source.close();
    source.addEventListener("token", event => take(now, event.data));
    source.addEventListener("done", () => end(now, "Done"));
    source.addEventListener("photon.error", () => end(now, "The answer has failed"));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) endSoon(now, "The server refused");
    });
  }

  // The same stream, read by hand: what EventSource cannot do is send a body.
  async function receiveByFetch(now, prompt) {
    const abort = new AbortController();
    now.cancel = () => abort.abort();
    const response = await fetch("answers/" + now.key, {
      method: "POST", signal: abort.signal,
      headers: { "content-type": "application/json" }, body: JSON.stringify({ prompt }),
    });
    if (!response.ok) return end(now, "The server refused");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = "";;) {
      const { value, done } = await reader.read();
      if (done) return end(now, "Cut off");
      const records = (text + value).split("\n\n");
      text = records.pop();
      for (const record of records) {
        const field = name => record.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
        if (field("event") === "token") take(now, field("data"));
        if (field("event") === "done") return end(now, "Done");
        if (field("event") === "photon.error") return end(now, "The answer has failed");
      }
    }
  }

  function receive({ key, prompt, by }) {
    const now = run = begin(key);
    if (by === "EventSource") receiveByEventSource(now, prompt);
    else receiveByFetch(now, prompt).catch(() => endSoon(now, "The connection was lost"));
  }

  find("form").addEventListener("submit", event => {
    event.preventDefault();
    if (run) return;
    const by = document.querySelector("[name=by]:checked").value;
    const wanted = { key: makeKey(), prompt: find("prompt").value, by };
    sessionStorage.setItem("answer", JSON.stringify(wanted));
    receive(wanted);
  });
  stop.addEventListener("click", () => end(run, "Stopped"));

  const unfinished = JSON.parse(sessionStorage.getItem("answer"));
  if (unfinished) {
    find("prompt").value = unfinished.prompt;
    document.querySelector(`[value=${unfinished.by}]`).checked = true;
    receive(unfinished);
  }
</script>
</html>
]]
