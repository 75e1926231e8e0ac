"use strict";
// The page's behaviour. The rule: the table is there already, and what it says is read from it; the report is
// only asked for what a panel shows. Text becomes text nodes and nothing else.
(() => {
  const find = (id) => document.getElementById(id);
  const report = JSON.parse(find("report").textContent);
  const checks = new Map(report.checks.map((check) => [check.id, check]));
  const subjects = report.subjects.filter((subject) => !subject.not_run);
  const verdicts = subjects.map(
    (subject) => new Map(subject.verdicts.map((verdict) => [verdict.check, verdict])),
  );
  const table = find("matrix");
  const panel = find("panel");
  const body = panel.querySelector(".body");
  const FAR = 1e6; // more rows than there are
  const FINDINGS = ["failed", "broken", "known", "surprise"];

  /** An element. Attributes by name; children are elements and texts. */
  function make(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== undefined && child !== ""));
    return made;
  }

  /** A text whose `words` between backticks are code. */
  const prose = (text) =>
    text.split(/``?([^`]+)``?/).map((part, index) => (index % 2 ? make("code", {}, part) : part));

  // What is shown, kept in the address

  const rows = [...table.querySelectorAll("tr[data-check]")].map((row) => {
    const check = checks.get(row.dataset.check);
    const words = [check.id, check.requirement, check.source, row.querySelector("th").textContent];
    return { row, check, words: words.join(" ").toLowerCase() };
  });
  const LEVELS = ["must", "should", "may"];
  const names = new Map(); // what the table calls each subject
  for (const cell of [...table.tHead.rows[0].cells].slice(1)) {
    names.set(subjects[names.size].id, cell.querySelector("span").textContent);
  }
  const ALL = { text: "", group: "", level: [], status: [], show: [], differ: false };
  const NOTHING = { ...ALL, check: "", subject: "" };
  let state = { ...NOTHING };

  function fromAddress() {
    const said = new URLSearchParams(location.hash.slice(1));
    return {
      text: said.get("text") ?? "",
      group: said.get("group") ?? "",
      level: said.getAll("level"),
      status: said.getAll("status"),
      show: said.getAll("show"),
      differ: said.has("differ"),
      check: checks.has(said.get("check")) ? said.get("check") : "",
      subject: said.get("subject") ?? "",
    };
  }

  function toAddress(keep) {
    const said = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one) said.append(key, one === true ? "1" : one);
      }
    }
    const hash = said.size ? `#${said}` : location.pathname + location.search;
    history[keep ? "pushState" : "replaceState"](null, "", hash);
  }

  function change(changes) {
    state = { ...state, ...changes };
    toAddress(false);
    show();
  }

  // Filters

  const toggled = (list, value) =>
    list.includes(value) ? list.filter((one) => one !== value) : [...list, value];
  const shown = (index) => !state.show.length || state.show.includes(subjects[index].id);
  const marks = (row) => [...row.cells].slice(1).filter((cell, index) => shown(index) && cell.className);

  function fits({ row, check, words }) {
    const there = new Set(marks(row).map((cell) => cell.className));
    const different = new Set([...there].filter((mark) => mark !== "figure"));
    return (
      (!state.group || check.group === state.group) &&
      (!state.level.length || state.level.includes(check.level)) &&
      (!state.status.length || state.status.some((mark) => there.has(mark))) &&
      (!state.differ || different.size > 1) &&
      state.text.toLowerCase().split(/\s+/).every((word) => words.includes(word))
    );
  }

  function show() {
    const left = new Set();
    for (const one of rows) {
      one.row.hidden = !fits(one);
      if (!one.row.hidden) left.add(one.check.id);
    }
    for (const part of table.tBodies) {
      part.hidden = !rows.some(({ row }) => row.parentNode === part && !row.hidden);
    }
    for (const row of table.rows) {
      [...row.cells].slice(1).forEach((cell, index) => (cell.hidden = !shown(index)));
    }
    const lists = [...document.querySelectorAll("#findings ul")];
    for (const list of lists) {
      for (const line of list.children) line.hidden = !left.has(line.dataset.check);
      const index = subjects.findIndex((subject) => subject.id === list.dataset.subject);
      const empty = !shown(index) || ![...list.children].some((line) => !line.hidden);
      list.parentNode.hidden = empty;
    }
    find("findings").hidden = lists.length > 0 && lists.every((list) => list.parentNode.hidden);
    const { check, subject, ...filters } = state;
    const filtered = Object.values(filters).some((one) => one === true || one.length);
    find("tally").value = filtered ? `${left.size} of ${checks.size} checks` : `${checks.size} checks`;
    find("reset").hidden = !filtered;
    find("nothing").hidden = left.size > 0;
    find("text").value = state.text;
    find("group").value = state.group;
    find("differ").setAttribute("aria-pressed", state.differ);
    for (const chip of document.querySelectorAll(".chips [data-value]")) {
      chip.setAttribute("aria-pressed", state[chip.dataset.key].includes(chip.dataset.value));
    }
    for (const box of document.querySelectorAll("#columns input")) {
      box.checked = !state.show.length || state.show.includes(box.value);
    }
    settle();
  }

  function chip(key, value, ...children) {
    const made = make("button", { type: "button", "data-key": key, "data-value": value }, ...children);
    made.addEventListener("click", () => change({ [key]: toggled(state[key], value) }));
    return made;
  }

  function column(subject) {
    const box = make("input", { type: "checkbox", value: subject.id });
    box.addEventListener("change", () => {
      const all = subjects.map((one) => one.id);
      const now = all.filter((id) => (id === subject.id ? box.checked : shown(all.indexOf(id))));
      change({ show: now.length === all.length ? [] : now.length ? now : state.show });
    });
    return make("label", {}, box, ` ${names.get(subject.id)}`);
  }

  function prepareFilters() {
    const groups = new Set(report.checks.map((check) => check.group));
    const option = (value, text) => make("option", { value }, text);
    find("group").append(option("", "All groups"), ...[...groups].map((one) => option(one, one)));
    const levels = LEVELS.filter((level) => report.checks.some((check) => check.level === level));
    find("levels").append(...levels.map((level) => chip("level", level, level)));
    for (const one of find("legend").children) {
      const mark = one.querySelector("b").cloneNode(true);
      const made = chip("status", mark.className, mark, one.textContent.slice(mark.textContent.length));
      made.title = one.title;
      find("statuses").append(made);
    }
    find("legend").hidden = true;
    find("differing").hidden = find("columns").hidden = subjects.length < 2;
    find("columns").querySelector("div").append(...subjects.map(column));
    find("text").addEventListener("input", (event) => change({ text: event.target.value.trim() && event.target.value }));
    find("group").addEventListener("change", (event) => change({ group: event.target.value }));
    find("differ").addEventListener("click", () => change({ differ: !state.differ }));
    find("reset").addEventListener("click", () => change(ALL));
    find("filters").addEventListener("submit", (event) => event.preventDefault());
    document.addEventListener("click", (event) => {
      if (!find("columns").contains(event.target)) find("columns").open = false;
    });
    find("filters").hidden = false;
  }

  // The table as a grid: one cell of it is in the order of tabs, and the arrows move from cell to cell

  let current = null;

  const cellsOf = (row) => [...row.cells].filter((cell) => !cell.hidden);
  const visible = () => rows.filter(({ row }) => !row.hidden).map(({ row }) => row);

  function settle() {
    if (current && !current.hidden && !current.closest("[hidden]")) return;
    stand(visible()[0]?.cells[0] ?? null);
  }

  function stand(cell) {
    if (current) current.tabIndex = -1;
    current = cell;
    if (current) current.tabIndex = 0;
  }

  function cellOf(check, subject) {
    const index = subjects.findIndex((one) => one.id === subject) + 1;
    return rows.find((one) => one.check.id === check)?.row.cells[index] ?? null;
  }

  function move(key, far) {
    const there = visible();
    const row = current.parentNode;
    const cells = cellsOf(row);
    const [down, right] = [there.indexOf(row), cells.indexOf(current)];
    const to = {
      ArrowUp: [down - 1, right],
      ArrowDown: [down + 1, right],
      ArrowLeft: [down, right - 1],
      ArrowRight: [down, right + 1],
      PageUp: [Math.max(0, down - 10), right],
      PageDown: [Math.min(there.length - 1, down + 10), right],
      Home: [far ? 0 : down, 0],
      End: [far ? there.length - 1 : down, cells.length - 1],
    }[key];
    const cell = to && there[to[0]] && cellsOf(there[to[0]])[to[1]];
    if (cell) cell.focus();
    return Boolean(to);
  }

  function prepareGrid() {
    table.setAttribute("role", "grid");
    table.setAttribute("aria-label", "Checks and subjects; Enter opens what a cell stands for");
    table.parentNode.removeAttribute("tabindex");
    for (const { row } of rows) {
      for (const cell of row.cells) {
        if (cell.cellIndex && !cell.className) continue;
        cell.tabIndex = -1;
        cell.setAttribute("aria-haspopup", "dialog");
      }
    }
    table.addEventListener("focusin", (event) => {
      const cell = event.target.closest("[tabindex]");
      if (cell) stand(cell);
    });
    table.addEventListener("click", (event) => {
      const cell = event.target.closest("tr[data-check] > [tabindex]");
      if (cell) openCell(cell);
    });
    table.addEventListener("keydown", (event) => {
      if (event.altKey || event.metaKey || !current) return;
      if (event.key === "Enter" || event.key === " ") openCell(current);
      else if (!move(event.key, event.ctrlKey)) return;
      event.preventDefault();
    });
  }

  function openCell(cell) {
    stand(cell);
    open(cell.parentNode.dataset.check, cell.cellIndex ? subjects[cell.cellIndex - 1].id : "");
  }

  // The panel

  function open(check, subject) {
    const fresh = !panel.open;
    state = { ...state, check, subject };
    toAddress(fresh);
    fill();
  }

  function fill() {
    const check = checks.get(state.check);
    const index = subjects.findIndex((subject) => subject.id === state.subject);
    panel.querySelector(".where").replaceChildren(
      make("span", { class: `level ${check.level}` }, check.level),
      ` ${check.group}`,
    );
    body.replaceChildren(
      make("h2", { id: "panel-title" }, check.id),
      ...check.requirement.split(/\n\s*\n/).map((part) => make("p", { class: "requirement" }, ...prose(part))),
      make("p", { class: "source" }, "Source: ", source(check.source)),
      everybody(check, index),
      ...(index < 0 ? [] : judged(check, index)),
    );
    const found = findings();
    find("before").disabled = !next(found, -1);
    find("after").disabled = !next(found, 1);
    if (!panel.open) panel.showModal();
    body.scrollTop = 0;
    body.focus({ preventScroll: true });
  }

  const source = (place) =>
    /^https?:\/\//.test(place)
      ? make("a", { href: place, rel: "noopener noreferrer", target: "_blank" }, place)
      : make("code", {}, place);

  /** All subjects on this check, to go from one to the other. */
  function everybody(check, index) {
    const buttons = subjects.map((subject, at) => {
      const cell = cellOf(check.id, subject.id);
      const word = cell.getAttribute("aria-label");
      const mark = make("b", { class: cell.className, title: word ?? false }, cell.textContent);
      const now = at === index && "true";
      const button = make("button", { type: "button", "aria-current": now }, mark, ` ${names.get(subject.id)}`);
      button.setAttribute("aria-label", `${names.get(subject.id)}: ${word ?? cell.textContent}`);
      button.disabled = !cell.className;
      button.addEventListener("click", () => open(check.id, subject.id));
      return button;
    });
    return make("div", { class: "everybody", role: "group", "aria-label": "Subjects" }, ...buttons);
  }

  function judged(check, index) {
    const [subject, verdict] = [subjects[index], verdicts[index].get(check.id)];
    if (!verdict) return [];
    const cell = cellOf(check.id, subject.id);
    const word = cell.getAttribute("aria-label") ?? "measured";
    const parts = [
      make(
        "h3",
        { class: `verdict ${cell.className}` },
        make("b", {}, cell.className === "figure" ? "" : `${cell.textContent} `, word),
        make("span", { class: "whose" }, ` ${names.get(subject.id)} ${subject.version ?? ""}`),
        make("span", { class: "took" }, ` ${verdict.seconds.toFixed(2)} s`),
      ),
    ];
    if (verdict.summary) parts.push(make("p", { class: "summary" }, verdict.summary));
    if (verdict.pinned) parts.push(make("p", { class: "pinned" }, "Pinned as known to fail: ", verdict.pinned));
    if (verdict.measured) parts.push(figures(verdict.measured));
    if (verdict.diff) parts.push(make("h4", {}, "Difference"), difference(verdict.diff));
    const talks = [
      ["Straight to the server", verdict.straight],
      ["Through the subject", verdict.transcript],
    ].filter(([, lines]) => lines);
    if (talks.length) {
      const sides = talks.map(([title, lines]) => talk(title, lines));
      parts.push(make("div", { class: `talks of-${sides.length}` }, ...sides));
    }
    const again = make("code", {}, `mcpzip-conformance explain ${check.id} ${subject.id}`);
    if (FINDINGS.includes(cell.className)) parts.push(make("p", { class: "again" }, "Play it again: ", again));
    return parts;
  }

  function figures(measured) {
    const lines = measured.map((one) => {
      const digits = one.unit === "tokens" || Math.abs(one.value) >= 100 ? 0 : Math.abs(one.value) >= 10 ? 1 : 2;
      const style = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      const value = one.value.toLocaleString("en", style) + (one.unit === "ratio" ? "" : ` ${one.unit}`);
      return make("div", {}, make("dt", {}, one.name || "measured"), make("dd", {}, value));
    });
    return make("dl", { class: "figures" }, ...lines);
  }

  function difference(lines) {
    const kind = (line) => (/^(---|\+\+\+|@@)/.test(line) ? "head" : { "+": "add", "-": "del" }[line[0]]);
    const parts = lines.map((line) => make("span", { class: kind(line) ?? false }, `${line}\n`));
    return make("pre", { class: "diff", tabindex: "0" }, ...parts);
  }

  function talk(title, lines) {
    const items = lines.map((line) => {
      const [, at, arrow, said] = /^\s*(\d+\.\d+) ([→←]) (.*)$/s.exec(line) ?? [];
      if (!at) return make("li", { class: "note" }, line);
      const who = arrow === "→" ? "sent" : "received";
      const parts = { at, arrow, message: said };
      const spans = Object.entries(parts).map(([name, text]) => make("span", { class: name }, text));
      return make("li", { class: who }, ...spans);
    });
    return make("section", {}, make("h4", {}, title), make("ol", { class: "talk" }, ...items));
  }

  /** Every finding in sight, a subject after the other, as [place, check, subject]. */
  function findings() {
    const there = visible();
    return subjects.flatMap((subject, index) =>
      shown(index)
        ? there
            .map((row, at) => [index * FAR + at, row.dataset.check, subject.id, row.cells[index + 1].className])
            .filter((one) => FINDINGS.includes(one[3]))
        : [],
    );
  }

  function next(found, step) {
    const at = Math.max(0, subjects.findIndex((subject) => subject.id === state.subject)) * FAR;
    const here = at + visible().findIndex((row) => row.dataset.check === state.check);
    return step > 0 ? found.find(([place]) => place > here) : found.findLast(([place]) => place < here);
  }

  function go(step) {
    const to = next(findings(), step);
    if (to) open(to[1], to[2]);
  }

  function preparePanel() {
    find("before").addEventListener("click", () => go(-1));
    find("after").addEventListener("click", () => go(1));
    find("close").addEventListener("click", () => panel.close());
    panel.addEventListener("click", (event) => event.target === panel && panel.close());
    panel.addEventListener("close", () => {
      const cell = cellOf(state.check, state.subject);
      if (!state.check) return;
      change({ check: "", subject: "" });
      if (cell && !cell.closest("[hidden]")) cell.focus();
    });
    for (const line of document.querySelectorAll("#findings li")) {
      const name = line.querySelector(".name");
      const check = line.dataset.check;
      const subject = line.parentNode.dataset.subject;
      const link = make("a", { class: "name", href: `#${new URLSearchParams({ check, subject })}` }, name.textContent);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        open(check, subject);
      });
      name.replaceWith(link);
    }
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select")) return;
      if (event.key === "/" && !panel.open) find("text").focus();
      else if (panel.open && event.key === "n") go(1);
      else if (panel.open && event.key === "p") go(-1);
      else return;
      event.preventDefault();
    });
  }

  /** Paper can't be unfolded. */
  function unfold() {
    for (const part of document.querySelectorAll("#findings details")) part.open = true;
  }

  function save() {
    const text = JSON.stringify(report, null, 2);
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    make("a", { href: url, download: `conformance-${report.started.slice(0, 10)}.json` }).click();
    URL.revokeObjectURL(url);
  }

  function follow() {
    state = fromAddress();
    show();
    if (state.check) fill();
    else if (panel.open) panel.close();
  }

  prepareFilters();
  prepareGrid();
  preparePanel();
  find("save").addEventListener("click", save);
  find("save").hidden = document.querySelector(".keys").hidden = false;
  window.addEventListener("hashchange", follow);
  window.addEventListener("beforeprint", unfold);
  follow();
})();
