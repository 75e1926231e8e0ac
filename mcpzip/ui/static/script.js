// What the pages do with a script. Without it they can be read, and signed in to by a form.
"use strict";

// The token moves from the fragment, which no server sees, into a cookie that no script sees.
function signIn(form, token) {
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.token.value = token;
  form.requestSubmit();
}

// What can be scrolled, and has the focus for that.
const REGIONS = '[tabindex="0"]';

// What tells an element of a page from the others, also in a newer version of the page.
function nameOf(element) {
  const names = ["href", "aria-labelledby", "aria-label"].map((name) => element.getAttribute(name));
  return [element.tagName, ...names].join("\n");
}

// A page says by `data-live` that it changes by itself, and where news are told. It is asked for again, whole, when there is news.
class Live {
  constructor(main) {
    this.main = main;
    this.events = null;
    this.asking = false;
    this.missed = false; // whether there was news that this page doesn't show yet
    document.addEventListener("visibilitychange", () => this.look());
    addEventListener("pagehide", () => this.stop());
    addEventListener("pageshow", () => this.look());
    main.addEventListener("focusout", () => this.missed && this.renew());
    this.look();
  }

  // A tab that nobody sees costs nothing, and takes none of the browser's connections.
  look() {
    if (document.hidden) this.stop();
    else if (this.events === null) {
      this.events = new EventSource(this.main.dataset.live);
      this.events.addEventListener("message", () => this.renew());
    }
  }

  stop() {
    this.events?.close();
    this.events = null;
  }

  get busy() {
    const at = document.activeElement;
    return at !== null && this.main.contains(at) && at.matches("input, select, textarea, button");
  }

  async renew() {
    this.missed = true;
    if (this.asking || this.busy) return;
    this.asking = true;
    this.missed = false;
    try {
      const answer = await fetch(location.href, { redirect: "error" });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      this.missed ||= this.busy;
      if (next === null || this.busy || next.innerHTML === this.main.innerHTML) return;
      const focused = this.main.contains(document.activeElement) ? nameOf(document.activeElement) : null;
      const scrolled = new Map();
      for (const each of this.main.querySelectorAll(REGIONS)) {
        scrolled.set(nameOf(each), [each.scrollLeft, each.scrollTop]);
      }
      this.main.replaceChildren(...next.childNodes);
      for (const each of this.main.querySelectorAll(REGIONS)) {
        const before = scrolled.get(nameOf(each));
        if (before !== undefined) each.scrollTo(...before);
      }
      const again = [...this.main.querySelectorAll(`a[href], ${REGIONS}`)];
      if (focused !== null) again.find((each) => nameOf(each) === focused)?.focus({ preventScroll: true });
    } catch {
      // `mcpzip ui` has ended; the page stays as it is
    } finally {
      this.asking = false;
      if (this.missed && !this.busy) this.renew();
    }
  }
}

// The text of the config is checked while it is typed; a mistake is a link to its place in the text.
class Check {
  constructor(form) {
    this.form = form;
    this.timer = 0;
    this.asking = null;
    this.text = form.elements.text;
    this.text.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), 300);
    });
    form.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-line]");
      if (link === null) return;
      event.preventDefault();
      this.show(Number(link.dataset.line), Number(link.dataset.column));
    });
  }

  async ask() {
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const body = new URLSearchParams(new FormData(this.form));
    body.set("part", "problems");
    try {
      const answer = await fetch(this.form.dataset.check, { method: "POST", body, redirect: "error", signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = page.getElementById("problems");
      if (answer.ok && next !== null) document.getElementById("problems").replaceChildren(...next.childNodes);
      else this.unchecked();
    } catch (error) {
      if (error.name !== "AbortError") this.unchecked(); // else another letter was typed
    }
  }

  // What was said of an earlier text doesn't stay under another one.
  unchecked() {
    const text = document.createElement("p");
    text.className = "warn";
    text.textContent = "This text could not be checked. Press Check to see why.";
    document.getElementById("problems").replaceChildren(text);
  }

  show(line, column) {
    const lines = this.text.value.split("\n");
    const at = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0) + Math.max(0, column - 1);
    this.text.focus();
    this.text.setSelectionRange(at, Math.min(at + 1, this.text.value.length));
    const height = this.text.scrollHeight / lines.length;
    this.text.scrollTop = Math.max(0, (line - 5) * height);
  }
}

const form = document.getElementById("sign-in");
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (form !== null && token !== null) signIn(form, token);
else if (token !== null) history.replaceState(null, "", location.pathname + location.search);
const live = document.querySelector("main[data-live]");
if (live !== null) new Live(live);
const checked = document.querySelector("form[data-check]");
if (checked !== null) new Check(checked);
