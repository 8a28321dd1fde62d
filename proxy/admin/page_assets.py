"""The style and the script of the operator's page, and the headers that let a browser run only this script.

The policy names the style and the script by their hashes (Content Security Policy Level 3, "Hash usage for source
lists", November 2026), so that injected markup could neither run a script nor load anything.
"""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from proxy.admin.markup.svg_charts import CHART_STYLE
from proxy.listener.buffered_response import BASE_HEADERS

_PAGE_STYLE: Final = """
:root { color-scheme: light dark; --back: #f4f6f8; --card: #fff; --text: #1b2027; --soft: #56606c; --line: #d5dbe2;
  --link: #0a55b8; --good: #17652f; --good-back: #dff3e4; --warn: #7a4d00; --warn-back: #fdefcf; --bad: #a0141e;
  --bad-back: #fde3e4; }
@media (prefers-color-scheme: dark) { :root { --back: #0e1217; --card: #171d24; --text: #e5e9ee; --soft: #a0abb8;
  --line: #2d3743; --link: #7fb4ff; --good: #7fdc98; --good-back: #12301c; --warn: #f5c76a; --warn-back: #372a0c;
  --bad: #ff9a9f; --bad-back: #3f161a; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: .5rem 1rem; z-index: 1; }
header, nav, main, footer { max-width: 88rem; margin: 0 auto; padding: 0 1rem; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1rem; padding-top: 1rem; }
h1 { font-size: 1.35rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 0 0 .6rem; }
#updated { margin: 0; color: var(--soft); flex: 1 1 12rem; }
#updated.late { color: var(--bad); font-weight: 600; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; margin: .6rem 0 0; padding: 0; }
nav a { display: inline-block; padding: .15rem 0; }
button, select, input, .button { font: inherit; color: var(--text); background: var(--card); border-radius: .4rem;
  border: 1px solid var(--soft); padding: .3rem .7rem; min-height: 2.2rem; max-width: 100%; }
button, .button { cursor: pointer; text-decoration: none; display: inline-block; }
[hidden] { display: none; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0; }
.headline { font-size: 1.1rem; font-weight: 600; border-radius: .6rem; padding: .7rem 1rem; margin: 1rem 0 0; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: .9rem 1.2rem; margin: 0; }
dl div { min-width: 0; }
dl .wide { grid-column: span 2; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
form { display: flex; flex-wrap: wrap; gap: .5rem .8rem; align-items: end; margin: 0 0 .8rem; }
label { display: grid; gap: .15rem; font-size: .85rem; color: var(--soft); min-width: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .5rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem .4rem 0; border-top: 1px solid var(--line);
  overflow-wrap: break-word; }
tbody th, .any, .full { overflow-wrap: anywhere; }
thead th { color: var(--soft); font-size: .85rem; font-weight: 600; border-top: 0; overflow-wrap: normal; }
tbody th { font-weight: 600; min-width: 9rem; }
.n { text-align: right; white-space: nowrap; }
thead .n { white-space: normal; }
.any { min-width: 9rem; }
details + details { margin-top: .8rem; }
td small, dd small, li small { display: block; color: var(--soft); font-weight: 400; font-size: .85rem; }
.state { display: inline-block; white-space: nowrap; border-radius: .4rem; padding: .05rem .45rem; font-weight: 600; }
.good { color: var(--good); background: var(--good-back); }
.warn { color: var(--warn); background: var(--warn-back); }
.bad { color: var(--bad); background: var(--bad-back); }
meter { width: 6rem; height: .8rem; vertical-align: middle; }
code { font-family: ui-monospace, monospace; font-size: .9em; font-weight: 400; overflow-wrap: anywhere; }
summary { cursor: pointer; min-height: 1.5rem; }
ul.plain, ol.plain { margin: 0; padding-left: 1.2rem; }
ul.plain li, ol.plain li { overflow-wrap: anywhere; margin: .15rem 0; }
p.note { color: var(--soft); margin: .6rem 0 0; }
footer { color: var(--soft); padding-bottom: 2rem; }
@media (max-width: 60rem) {
  table, tbody, tr, th, td, caption { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  tbody tr { border-top: 1px solid var(--line); padding: .6rem 0; display: grid; gap: .1rem .8rem;
    grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); }
  tbody th, tbody td { border: 0; padding: .1rem 0; min-width: 0; }
  tbody th, tbody .full { grid-column: 1 / -1; }
  .n { text-align: left; white-space: normal; }
  tbody td[data-label]::before { content: attr(data-label); display: block; color: var(--soft); font-size: .8rem; }
  tbody td.empty { display: none; }
}
@media (max-width: 30rem) { dl { grid-template-columns: 1fr 1fr; } section { padding: .8rem; } }
"""

STYLE: Final = _PAGE_STYLE + CHART_STYLE

SCRIPT: Final = """
"use strict";
(() => {
  const EVERY = 5000, LIMIT = 20000;
  const statusLine = document.getElementById("updated");
  const pause = document.getElementById("pause"), live = { paused: false, busy: false };
  function attributes(old, next) {
    for (const { name, value } of [...next.attributes])
      if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes])
      if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  function adapt(old, next) {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== next.data) old.data = next.data;
      return;
    }
    attributes(old, next);
    if (old.nodeName !== "FORM") children(old, next);
  }
  function children(old, next) {
    const known = new Map([...old.children].filter((each) => each.id).map((each) => [each.id, each]));
    let here = old.firstChild;
    for (const wanted of [...next.childNodes]) {
      const match = wanted.id ? known.get(wanted.id) : here && !here.id && here.nodeName === wanted.nodeName && here;
      if (!match) { old.insertBefore(wanted, here); continue; }
      if (match === here) here = here.nextSibling;
      else old.insertBefore(match, here);
      adapt(match, wanted);
    }
    while (here) { const gone = here; here = here.nextSibling; gone.remove(); }
  }
  function showStatus(text, late) {
    if (statusLine.textContent !== text) statusLine.textContent = text;
    statusLine.classList.toggle("late", late);
  }
  async function update() {
    if (live.busy || live.paused || document.hidden) return;
    live.busy = true;
    try {
      const address = location.pathname + location.search, signal = AbortSignal.timeout(LIMIT);
      const response = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store", signal });
      if (!response.ok) throw new Error("status " + response.status);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (!page.querySelector("main")) throw new Error("another page");
      if (live.paused) return;
      for (const part of ["nav", "main"]) children(document.querySelector(part), page.querySelector(part));
      showStatus("Updates itself every 5 seconds.", false);
    } catch (error) {
      showStatus("Not updated: the gateway does not answer (" + error.message + "). The page is out of date.", true);
    } finally {
      live.busy = false;
    }
  }
  pause.hidden = false;
  pause.addEventListener("click", () => {
    live.paused = !live.paused;
    pause.textContent = live.paused ? "Resume updates" : "Pause updates";
    showStatus(live.paused ? "Updates are paused." : "Updates itself every 5 seconds.", false);
    update();
  });
  document.addEventListener("visibilitychange", update);
  setInterval(update, EVERY);
  showStatus("Updates itself every 5 seconds.", false);
})();
"""


def _hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"style-src {_hash_of(STYLE)}",
        f"script-src {_hash_of(SCRIPT)}",
        *("connect-src 'self'", "form-action 'self'", "img-src data:", "base-uri 'none'", "frame-ancestors 'none'"),
    )
)

PAGE_HEADERS: Final[Mapping[str, str]] = {
    **BASE_HEADERS,
    "Content-Type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
"""The response headers of the page."""
