// Keyboard shortcuts, state that survives live updates, and the event stream of hidden tabs.
// The pages work without this file.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  const rows = () => $$("[data-row]");
  const selected = () => $("[data-row].selected");

  function select(row) {
    selected()?.classList.remove("selected");
    if (!row) return;
    row.classList.add("selected");
    const link = $("a", row);
    (link || row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function move(step) {
    const all = rows();
    if (all.length === 0) return;
    const place = all.indexOf(selected());
    const next = place < 0 ? (step > 0 ? 0 : all.length - 1) : place + step;
    select(all[Math.max(0, Math.min(all.length - 1, next))]);
  }

  function toggleHelp() {
    const help = $("#keys");
    if (!help) return;
    if (help.open) help.close();
    else help.showModal();
  }

  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");

  let afterG = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && isTyping(event.target)) return event.target.blur();
    if (isTyping(event.target)) return;
    if (Date.now() - afterG < 1500) {
      afterG = 0;
      const link = $(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        return link.click();
      }
    }
    switch (event.key) {
      case "/": {
        event.preventDefault();
        const field = $("[data-search]");
        if (field) field.select(), field.focus();
        else location.href = "/ui/memory";
        break;
      }
      case "j": move(1); break;
      case "k": move(-1); break;
      case "g": afterG = Date.now(); break;
      case "?": toggleHelp(); break;
      case "Enter":
        if (!event.target.closest("a, button, summary")) $("a", selected() || document.body)?.click();
        break;
    }
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("#show-keys")) toggleHelp();
    const toggle = event.target.closest("[data-confirm]");
    if (toggle && !confirm(toggle.dataset.confirm)) event.preventDefault();
  });

  // A live update replaces elements: what was open, selected or focused stays so.
  let kept = null;
  document.addEventListener("htmx:beforeSwap", () => {
    kept = {
      open: $$("details[id][open]").map((element) => element.id),
      row: selected()?.id,
      focus: document.activeElement?.id || (selected()?.contains(document.activeElement) ? "row" : ""),
    };
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!kept) return;
    for (const id of kept.open) document.getElementById(id)?.setAttribute("open", "");
    const row = kept.row && document.getElementById(kept.row);
    if (row && kept.focus === "row") select(row);
    else if (row) row.classList.add("selected");
    kept = null;
    drawPlots();
  });
  // A response that is not the page, for example the sign-in page, must not be swapped in.
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.reload();
  });

  // The event stream. A browser opens few connections to one server, so a hidden tab closes its stream. After a
  // pause or an interruption the page is loaded again, because changes may have been missed.
  class Stream extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
      this.isClosed = false;
      this.wasOpen = false;
      document.addEventListener("visibilitychange", () => this.update());
      this.update();
    }
    get readyState() {
      return this.isClosed ? EventSource.CLOSED : EventSource.OPEN;
    }
    update() {
      if (document.hidden || this.isClosed) {
        this.source?.close();
        this.source = null;
      } else if (!this.source) {
        const source = (this.source = new EventSource(this.url));
        source.addEventListener("change", () => this.dispatchEvent(new Event("change")));
        source.onopen = () => {
          if (this.wasOpen) this.dispatchEvent(new Event("change"));
          else this.onopen?.();
          this.wasOpen = true;
        };
        source.onerror = () => {
          if (source.readyState === EventSource.CLOSED && this.source === source) {
            this.source = null;
            setTimeout(() => this.update(), 2000);
          }
        };
      }
    }
    close() {
      this.isClosed = true;
      this.update();
    }
  }
  if (window.htmx) htmx.createEventSource = (url) => new Stream(url);

  // Plots: <figure data-plot='{"x":[…],"series":[{"label":…,"values":[…]}],"unit":…,"points":…}'>.
  function drawPlots() {
    if (!window.uPlot) return;
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    for (const figure of $$("[data-plot]:not([data-drawn])")) {
      figure.dataset.drawn = "";
      const { x, series, unit, points } = JSON.parse(figure.dataset.plot);
      const colours = [colour("--accent"), colour("--bad"), colour("--warn"), colour("--muted")];
      const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
      const options = {
        width: figure.clientWidth,
        height: 220,
        legend: { show: series.length > 1 },
        cursor: { y: false },
        axes: [axis, { ...axis, size: 64, values: (_, all) => all.map((value) => `${value.toLocaleString()}${unit || ""}`) }],
        series: [{}, ...series.map((one, place) => ({
          label: one.label, stroke: colours[place % colours.length], width: points ? 0 : 2,
          points: { show: points || x.length < 40, size: 6, fill: colours[place % colours.length] },
        }))],
      };
      const plot = new uPlot(options, [x, ...series.map((one) => one.values)], figure);
      addEventListener("resize", () => plot.setSize({ width: figure.clientWidth, height: 220 }));
    }
  }
  drawPlots();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const figure of $$("[data-drawn]")) {
      figure.replaceChildren();
      delete figure.dataset.drawn;
    }
    drawPlots();
  });
  // On a phone the list of pages scrolls.
  const current = $("nav a[aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.clientWidth / 2;
})();
