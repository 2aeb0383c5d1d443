"""The style of the page: colours by light and dark, tables, plots, paper."""

from typing import Final

STYLE: Final = """\
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2126; --soft: #59636e; --rule: #d5dbe1; --stripe: #f5f7f9;
  --warn-paper: #fff4d6; --warn-ink: #5c4300; --warn-rule: #d9a400;
  --good: #2f7fd0; --bad: #e07b1a;
  --c0: #1f6fc4; --c1: #c8500a; --c2: #16845b; --c3: #a3379b;
  --c4: #8a6d00; --c5: #0b8aa5; --c6: #c22f45; --c7: #5b5fc7;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14181c; --ink: #e4e8ec; --soft: #9aa5b1; --rule: #353d45; --stripe: #1b2025;
    --warn-paper: #3a2e08; --warn-ink: #ffdf8a; --warn-rule: #b58900;
    --good: #3f8fe0; --bad: #d9771f;
    --c0: #6cb1ff; --c1: #ff9a5c; --c2: #4fcf9b; --c3: #e58ade;
    --c4: #e0c04c; --c5: #4fcbe3; --c6: #ff8091; --c7: #a9acff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 62rem;
  background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
h1 { margin: 0; font-size: 1.75rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2.25rem 0 .6rem; font-size: 1.2rem; }
p { margin: .4rem 0; }
section > p, figcaption, footer, dd { color: var(--soft); font-size: .875rem; overflow-wrap: anywhere; }
.state { font-weight: 600; }
.state.open, .notes {
  padding: .5rem .8rem; border-left: 4px solid var(--warn-rule);
  background: var(--warn-paper); color: var(--warn-ink);
}
.notes { margin: .5rem 0; padding-left: 2rem; }
.notes li { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .65rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--rule); }
thead th { vertical-align: bottom; white-space: normal; color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; white-space: normal; overflow-wrap: anywhere; min-width: 9rem; max-width: 18rem; }
tbody tr:nth-child(even) { background: var(--stripe); }
.number { text-align: right; }
td.text { white-space: normal; }
table.tables td:last-child { font-family: ui-monospace, monospace; font-size: .8rem; white-space: nowrap; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: .875rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .5rem 0; font-size: .875rem; }
dd { margin: 0; }
code { overflow-wrap: anywhere; font-size: .9em; }
figure { margin: 0 0 .8rem; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--rule); }
svg { display: block; max-width: 100%; min-width: 46rem; height: auto; font-size: 12.5px; }
svg text { fill: var(--ink); }
svg .tick, svg .axis { fill: var(--soft); }
svg .tick { font-size: 11.5px; }
svg .tick, svg .value { font-variant-numeric: tabular-nums; }
.grid { stroke: var(--rule); stroke-width: 1; }
.zero { stroke: var(--soft); stroke-width: 1.25; }
.whisker { stroke: var(--c0); stroke-width: 2; }
.dot { fill: var(--c0); stroke: var(--c0); stroke-width: 1.5; }
.dot.open { fill: var(--paper); }
.series { fill: none; stroke-width: 1.9; stroke-linejoin: round; }
.thread { fill: none; stroke-width: 1; opacity: .65; }
.series.dashed { stroke-dasharray: 5 3; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
.series, .thread { stroke: var(--c); }
.end { fill: var(--c); }
.cell.good { fill: var(--good); }
.cell.bad { fill: var(--bad); }
@media print {
  :root { color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 11px; }
  section, figure, tr { break-inside: avoid; }
  #tables, #crosstable { break-inside: auto; }
  h2 { break-after: avoid; }
  .wide { overflow: visible; }
  svg { min-width: 0; }
  .cell, .notes, .state.open, tbody tr { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
