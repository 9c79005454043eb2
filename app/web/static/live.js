// What a page does by itself: live parts, keys, theme, the viewer's zone.  Everything works without.
"use strict";
(() => {
  const root = document.documentElement;
  const YEAR = 31536000;
  const keep = (name, value, seconds = YEAR) => {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${seconds}; SameSite=Lax${secure}`;
  };
  const typing = (target) =>
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

  // --- the viewer's zone: the server writes times in it from the next page on
  try {
    keep("sw_zone", Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");
  } catch (error) {
    console.debug("no time zone", error);
  }

  // --- theme
  const showTheme = () => {
    for (const button of document.querySelectorAll("[data-theme-to]")) {
      button.setAttribute("aria-pressed", String((root.dataset.theme || "") === button.dataset.themeTo));
    }
  };
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-theme-to]");
    if (!button) return;
    const theme = button.dataset.themeTo;
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    keep("sw_theme", theme, theme ? YEAR : 0);
    showTheme();
    document.dispatchEvent(new CustomEvent("sw:theme", { detail: theme }));
  });

  // --- live parts: <div data-live="/fragment/docket" data-stamp="…" data-every="2">
  class Live {
    constructor(element) {
      this.element = element;
      this.every = Math.max(1, Number(element.dataset.every) || 2) * 1000;
      this.failures = 0;
      this.paused = false;
      this.plan();
    }

    plan() {
      clearTimeout(this.timer);
      if (!this.paused) this.timer = setTimeout(() => this.ask(), this.every * Math.min(15, 1 + this.failures));
    }

    async ask() {
      // A hidden page costs nothing; a half-filled form or an open menu is not pulled away.
      const busy = document.hidden || this.element.contains(document.activeElement) && typing(document.activeElement);
      if (!busy) await this.fetch();
      this.plan();
    }

    async fetch() {
      const address = new URL(this.element.dataset.live, location.href);
      address.searchParams.set("stamp", this.element.dataset.stamp || "");
      try {
        const answer = await fetch(address, { headers: { "X-Live": "1" }, credentials: "same-origin" });
        if (answer.status === 401) return this.stop("Signed out: open the page again.");
        if (!answer.ok) throw new Error(await answer.text());
        this.failures = 0;
        if (answer.status !== 204) this.show(await answer.text(), answer.headers.get("X-Stamp") || "");
        this.say(`Updated ${new Date().toLocaleTimeString([], { hour12: false })}, live.`, false);
      } catch (error) {
        this.failures += 1;
        this.say(`Not live: ${String(error.message).slice(0, 160) || "no answer"}`, true);
      }
    }

    show(html, stamp) {
      const row = this.element.querySelector("[data-row]:focus");
      const index = row ? [...this.element.querySelectorAll("[data-row]")].indexOf(row) : -1;
      this.element.innerHTML = html; // from our own server; scripts in it do not run
      this.element.dataset.stamp = stamp;
      if (index >= 0) focusRow([...this.element.querySelectorAll("[data-row]")][index]);
      this.element.dispatchEvent(new CustomEvent("sw:live", { bubbles: true }));
    }

    say(text, bad) {
      for (const place of document.querySelectorAll("[data-live-state]")) {
        place.textContent = text;
        place.classList.toggle("live-off", bad);
      }
    }

    stop(text) {
      this.paused = true;
      clearTimeout(this.timer);
      this.say(text, true);
    }

    pause(on) {
      this.paused = on;
      if (on) {
        clearTimeout(this.timer);
        this.say("Paused.", true);
      } else {
        this.fetch().then(() => this.plan());
      }
    }
  }

  const lives = [];
  const pause = () => {
    const on = !lives.every((live) => live.paused);
    for (const live of lives) live.pause(on);
    for (const link of document.querySelectorAll("[data-live-pause]")) link.textContent = on ? "Go on" : "Pause";
  };
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("[data-live-pause]");
    if (!link) return;
    event.preventDefault();
    pause();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) for (const live of lives) if (!live.paused) live.fetch();
  });

  // --- keys: / search, j k rows, a proposals, Enter opens the row's first link
  const focusRow = (row) => {
    if (!row) return;
    row.tabIndex = -1;
    row.focus();
    row.scrollIntoView({ block: "nearest" });
  };
  const moveRow = (step) => {
    const rows = [...document.querySelectorAll("[data-row]")];
    if (!rows.length) return;
    const now = rows.findIndex((row) => row.contains(document.activeElement));
    focusRow(rows[now < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, now + step))]);
  };
  const openApproval = () => {
    const row = document.activeElement && document.activeElement.closest("[data-row]");
    const place = (row || document).querySelector("[data-approve]");
    if (!place) return;
    if (place.matches("a, button, input, select, textarea, summary")) place.focus();
    else (place.querySelector("a, button, input, select, textarea") || place).focus();
    place.scrollIntoView({ block: "center" });
  };
  const keys = {
    "/": () => {
      const search = document.getElementById("q");
      if (search) search.focus();
    },
    j: () => moveRow(1),
    k: () => moveRow(-1),
    a: openApproval,
    Enter: (event) => {
      const row = event.target instanceof Element && event.target.matches("[data-row]") && event.target;
      const link = row && row.querySelector("a[href]");
      if (link) link.click();
      return Boolean(link);
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const act = Object.hasOwn(keys, event.key) && keys[event.key];
    if (act && act(event) !== false) event.preventDefault();
  });

  // --- a form is sent once, however often its button is clicked; a menu closes with Escape or a click beside it
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    else event.target.dataset.sent = "1";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.account[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of document.querySelectorAll("details.account[open]")) menu.open = false;
  });

  // The script is deferred: the page is there.
  for (const element of document.querySelectorAll("[data-themes], [data-keys], [data-live-pause]")) element.hidden = false;
  for (const element of document.querySelectorAll("[data-live]")) lives.push(new Live(element));
  showTheme();
})();
