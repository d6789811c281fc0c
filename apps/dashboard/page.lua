-- page: the whole page, with nothing to fetch beside it but the events.

local script = require "script"

local head = [[
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dashboard</title>
<link rel="icon" href="data:,">
<style>
  :root {
    color-scheme: light dark;
    --ground: #f6f5f2; --sheet: #fff; --ink: #1d1c1a; --quiet: #66625b; --line: #e2ded6;
    --one: #0b5fae; --two: #b4480f; --good: #1a7f45; --bad: #b3261e;
  }
  @media (prefers-color-scheme: dark) {
    :root {
      --ground: #171716; --sheet: #21201f; --ink: #eceae6; --quiet: #a8a39a; --line: #383633;
      --one: #7db8f0; --two: #f0a070; --good: #6cc890; --bad: #f2938c;
    }
  }
  * { box-sizing: border-box; }
  body {
    margin: 0; padding: clamp(.9rem, 2.5vw, 2rem); background: var(--ground); color: var(--ink);
    font: .95rem/1.45 system-ui, sans-serif; font-variant-numeric: tabular-nums;
  }
  main { max-width: 84rem; margin: 0 auto; }
  header { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; align-items: center; }
  h1 { font-size: clamp(1.35rem, 4vw, 1.7rem); line-height: 1.2; margin: 0; }
  h2 { font-size: .95rem; margin: 0; }
  p { margin: 0; }
  #about { color: var(--quiet); margin-right: auto; }
  #status::before { content: "●"; color: var(--bad); margin-right: .4em; }
  #status.live::before { color: var(--good); }
  .bar { display: flex; gap: .8rem; align-items: center; margin: .2rem 0 .7rem; }
  .bar label { flex: 1; display: flex; gap: .8rem; align-items: center; min-width: 0; }
  .bar input { flex: 1; min-width: 0; height: 2.75rem; margin: 0; accent-color: var(--quiet); }
  .bar output { min-width: 6em; text-align: right; color: var(--quiet); }
  button {
    min-height: 2.75rem; min-width: 6rem; padding: 0 1rem; font: inherit; font-weight: 600; cursor: pointer;
    border: 1px solid var(--one); border-radius: .5rem; background: transparent; color: var(--one);
  }
  button[aria-pressed=true] { background: var(--one); color: var(--sheet); }
  :focus-visible { outline: 3px solid var(--one); outline-offset: 2px; }
  #charts { display: grid; gap: .9rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17.5rem), 1fr)); }
  .card { margin: 0; padding: .8rem .9rem .6rem; background: var(--sheet); border: 1px solid var(--line);
    border-radius: .6rem; min-width: 0; }
  h2 small { font-weight: 400; font-size: inherit; color: var(--quiet); }
  dl { display: grid; grid-template-columns: 1fr 1fr; gap: 0 .8rem; margin: .35rem 0 .5rem; }
  dt { color: var(--quiet); font-size: .85rem; white-space: nowrap; }
  dt i { display: inline-block; width: .9rem; margin-right: .4rem; vertical-align: .25em; border-top: 2.5px solid; }
  dd { margin: 0; font-size: 1.3rem; line-height: 1.25; font-weight: 600; white-space: nowrap; }
  .one { color: var(--one); stroke: var(--one); }
  .two { color: var(--two); stroke: var(--two); }
  dt .two { border-top-style: dashed; }
  .plot { position: relative; touch-action: pan-y; }
  svg { display: block; width: 100%; height: 6rem; }
  svg path { fill: none; stroke-width: 1.75; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
  svg .two { stroke-dasharray: 5 2.5; }
  svg .area { fill: var(--one); stroke: none; opacity: .13; }
  svg line { stroke: var(--line); vector-effect: non-scaling-stroke; }
  svg .cursor { stroke: var(--quiet); }
  .plot span, .axis { color: var(--quiet); font-size: .75rem; line-height: 1.2; }
  .plot span { position: absolute; left: 0; top: .1rem; padding-right: .3em; background: var(--sheet);
    pointer-events: none; }
  .plot .least { top: auto; bottom: .1rem; background: none; }
  .axis { display: flex; justify-content: space-between; margin-top: .2rem; }
  #rest { display: grid; gap: .9rem; margin-top: .9rem; align-items: start;
    grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
  table { width: 100%; border-collapse: collapse; margin-top: .4rem; }
  th, td { padding: .35rem 0 .35rem .8rem; text-align: right; border-top: 1px solid var(--line); }
  th { font-size: .85rem; font-weight: 400; color: var(--quiet); border: 0; }
  th:first-child { text-align: left; padding-left: 0; }
  td:first-child, tbody th { text-align: left; padding-left: 0; overflow-wrap: anywhere; font-size: inherit;
    color: inherit; border-top: 1px solid var(--line); }
  th:not(:first-child) { white-space: nowrap; }
  .none { color: var(--quiet); margin-top: .4rem; }
  @media (max-width: 40rem) {
    #about { order: 1; width: 100%; }
    #status { margin-left: auto; }
    svg { height: 4.6rem; }
    th, td { padding-left: .6rem; }
  }
</style>
<main>
  <header>
    <h1>Dashboard</h1>
    <p id="about"></p>
    <p id="status" role="status">Connecting…</p>
    <button type="button" id="pause" aria-pressed="false">Pause</button>
  </header>
  <noscript><p>The charts are drawn by a script, which is switched off here. The numbers are at
    <a href="metrics">metrics</a>.</p></noscript>
  <div class="bar">
    <label>Moment <input id="moment" type="range" min="-299" max="0" value="0"></label>
    <output id="when" for="moment">now</output>
  </div>
  <section id="charts" aria-label="Charts of the last five minutes"></section>
  <div id="rest">
    <section class="card">
      <h2 id="routes-title">Busiest routes</h2>
      <table aria-labelledby="routes-title">
        <thead><tr><th scope="col">route</th><th scope="col">per s</th><th scope="col">total</th>
          <th scope="col">4xx, 5xx</th></tr></thead>
        <tbody id="routes"></tbody>
      </table>
    </section>
    <section class="card">
      <h2 id="troubles-title">Limits met and faults <small>since the start</small></h2>
      <table aria-labelledby="troubles-title"><tbody id="troubles"></tbody></table>
      <p class="none" id="none">None.</p>
    </section>
  </div>
</main>
<script>
]]

return head .. script .. "</script>\n</html>\n"
