#include "nereid/serve/server.h"

namespace nereid::serve {

namespace {

constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>nereid serve</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --paper: #fff; --card: #f6f8fa; --accent: #0b7a75;
  --bad: #b3261e; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f0; --soft: #9aa6b5; --line: #323b47; --paper: #12161c; --card: #1a2028;
  --accent: #3fb6af; --bad: #ff8a80; --good: #56d364; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.8rem 0 .5rem; } p { margin: .3rem 0; }
.soft { color: var(--soft); } .good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .7rem; margin: 1rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; }
.tile b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; } .tile span { color: var(--soft); font-size: .85rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } th { background: var(--card); font-weight: 600; white-space: nowrap; } .n { text-align: right; white-space: nowrap; } .time { white-space: nowrap; }
td.evidence { min-width: 16rem; overflow-wrap: anywhere; } td.evidence div + div { color: var(--soft); font-size: .9rem; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 1.5rem; } .sides > div { min-width: 0; }
svg { display: block; width: 100%; height: 7rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
svg rect { fill: var(--accent); } .empty { padding: .5rem .7rem; color: var(--soft); }
@media (max-width: 44rem) { #latest tr:has(th) { display: none; }
  #latest tr { display: flex; flex-wrap: wrap; gap: .1rem .9rem; padding: .4rem .7rem; border-bottom: 1px solid var(--line); }
  #latest td { border: 0; padding: 0; } #latest td.evidence { flex-basis: 100%; order: 1; min-width: 0; } #latest td:empty { display: none; } }
form { margin: 1rem 0; display: none; gap: .5rem; flex-wrap: wrap; } input, button { font: inherit; padding: .3rem .6rem; border-radius: 6px;
  border: 1px solid var(--line); background: var(--card); color: var(--ink); }
</style></head>
<body>
<header><h1>nereid serve</h1><span id="state" class="soft" role="status">loading</span><span id="about" class="soft"></span></header>
<form id="login"><label>Token <input id="token" type="password" autocomplete="off"></label><button>Show</button></form>
<main id="main" hidden>
<div class="tiles" id="tiles"></div>
<div class="sides">
<div><h2>Verdicts, last 10 minutes</h2><svg id="series" viewBox="0 0 600 100" preserveAspectRatio="none" role="img" aria-label="Verdicts in steps of 10 seconds"></svg>
<p class="soft" id="rate"></p></div>
<div><h2>Verdicts by kind</h2><div class="scroll"><table id="kinds"></table></div></div>
</div>
<h2>Latest</h2><div class="scroll"><table id="latest"></table></div>
<div class="sides">
<div><h2>Judges</h2><div class="scroll"><table id="judges"></table></div></div>
<div><h2>GPUs</h2><div class="scroll"><table id="gpus"></table></div></div>
<div><h2>Clients that wait</h2><div class="scroll"><table id="clients"></table></div></div>
<div><h2>Errors</h2><div class="scroll"><table id="errors"></table></div></div>
</div>
</main>
<script>
"use strict";
const at = id => document.getElementById(id);
const node = (name, text, kind) => { const made = document.createElement(name); made.textContent = text; if (kind) made.className = kind; return made; };
const seconds = value => value == null ? "" : value < 0.001 ? "< 1 ms" : value < 1 ? Math.round(value * 1000) + " ms" : value < 120 ? value.toFixed(1) + " s" : Math.round(value / 60) + " min";
const clock = value => node("td", new Date(value * 1000).toLocaleTimeString([], { hour12: false }), "time");
function table(id, heads, rows, none) {
  const made = at(id);
  made.replaceChildren();
  if (rows.length === 0) { const row = made.insertRow(); row.append(node("td", none, "empty")); return; }
  const head = made.insertRow();
  for (const [text, kind] of heads) head.append(node("th", text, kind));
  for (const cells of rows) {
    const row = made.insertRow();
    for (const cell of cells) row.append(cell);
  }
}
const number = value => node("td", String(value), "n");
function evidence(one) {
  const cell = node("td", "", "evidence");
  cell.append(node("div", one.reason || ""));
  for (const item of one.evidence || [])
    if (item.sentence && item.sentence !== one.reason) cell.append(node("div", item.sentence + (item.file && item.line ? " (" + item.file + ":" + item.line + ")" : "")));
  return cell;
}
function show(s) {
  at("main").hidden = false;
  at("about").textContent = s.hardware + " · " + s.versions.split(",")[0] + " · up " + seconds(s.now - s.started);
  const judged = Object.values(s.verdicts).reduce((a, b) => a + b, 0);
  at("tiles").replaceChildren(...[
    ["waiting", s.queue.waiting + " of " + s.queue.limit], ["under way", s.queue.under_way], ["verdicts a minute", s.per_minute],
    ["verdicts", judged], ["verified", judged ? Math.round(100 * (s.verdicts.Verified || 0) / judged) + " %" : "–"],
    ["asked before", s.known], ["faults", s.faults]].map(([name, value]) => {
      const tile = node("div", "", "tile"); tile.append(node("b", String(value)), node("span", name)); return tile; }));
  const counts = s.series.counts, most = Math.max(1, ...counts), wide = 600 / counts.length;
  at("series").replaceChildren(...counts.map((count, i) => {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), high = 96 * count / most;
    for (const [key, value] of [["x", i * wide + 1], ["y", 100 - high], ["width", wide - 2], ["height", high]]) bar.setAttribute(key, value);
    return bar; }));
  at("rate").textContent = "The highest bar is " + most + " in " + s.series.seconds + " s.";
  table("kinds", [["verdict"], ["count", "n"]], Object.entries(s.verdicts).sort((a, b) => b[1] - a[1]).map(([kind, count]) => [node("td", kind), number(count)]), "none yet");
  table("latest", [["time"], ["verdict"], ["task"], ["evidence"], ["speed-up", "n"], ["judged in", "n"], ["client"]], s.latest.map(one => [
    clock(one.answered), node("td", one.verdict, one.verdict === "Verified" ? "good" : one.verdict === "fault" ? "bad" : ""),
    node("td", one.task || one.id.slice(0, 8)), evidence(one), number(one.speedup == null ? "" : one.speedup.toFixed(2)), number(seconds(one.seconds)),
    node("td", one.client)]), "none yet");
  table("judges", [["judge"], ["state"], ["under way", "n"], ["verdicts", "n"], ["restarts", "n"]], s.judges.map(one => [
    node("td", one.name), node("td", one.running ? "runs" : "down", one.running ? "good" : "bad"), number(one.under_way + " of " + one.jobs),
    number(one.verdicts), number(one.restarts)]), "none");
  table("gpus", [["GPU"], ["clock", "n"], ["temperature", "n"], ["power", "n"], ["slowed by"]], s.gpus.map(one => [
    node("td", one.name), number(one.sm_mhz + " MHz"), number(one.celsius + " °C"), number(Math.round(one.watts) + " W"),
    node("td", one.throttled_by.join(", "))]), "none are used");
  table("clients", [["client"], ["waiting", "n"]], s.queue.clients.map(one => [node("td", one.name), number(one.waiting)]), "none");
  table("errors", [["time"], ["error"]], s.errors.slice(0, 10).map(one => [clock(one.time), node("td", one.message, "evidence")]), "none");
  at("state").textContent = s.ending ? "ending" : s.judges.some(one => one.running) ? "running" : "no judge runs";
  at("state").className = s.ending || !s.judges.some(one => one.running) ? "bad" : "good";
}
async function refresh() {
  const token = sessionStorage.getItem("token");
  try {
    const answer = await fetch("v1/status", { headers: token ? { Authorization: "Bearer " + token } : {} });
    at("login").style.display = answer.status === 401 ? "flex" : "none";
    if (answer.status === 401) { at("state").textContent = token ? "this token is not known" : "a token is needed"; return; }
    show(await answer.json());
  } catch (error) {
    at("state").textContent = "no answer from the server"; at("state").className = "bad";
  }
}
at("login").addEventListener("submit", event => { event.preventDefault(); sessionStorage.setItem("token", at("token").value); refresh(); });
refresh();
setInterval(() => { if (!document.hidden) refresh(); }, 2000);
</script>
</body></html>
)html";

}  // namespace

std::string_view live_page() { return kPage; }

}  // namespace nereid::serve
