"use strict";
// What the tests ask of a page.
globalThis.look = (() => {
  const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const text = (element) => element.textContent.trim().replace(/\s+/g, " ");
  const name = (element) => [
    element.closest("section")?.getAttribute("aria-labelledby"), element.tagName,
    element.getAttribute("href") ?? (element.name ? "name " + element.name : text(element)),
  ].filter(Boolean).join(" ");
  const all = (selector) => [...document.querySelectorAll(selector)];
  const colors = new Map(); // a canvas knows what a color is, and takes its time
  const rgb = (color) => {
    if (!colors.has(color)) {
      const c = document.createElement("canvas").getContext("2d");
      c.fillStyle = color;
      c.fillRect(0, 0, 1, 1);
      colors.set(color, [...c.getImageData(0, 0, 1, 1).data]);
    }
    return colors.get(color);
  };
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const back = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  return {
    tooWide: () => [
      ...(document.documentElement.scrollWidth > innerWidth ? [`the page: ${document.documentElement.scrollWidth}`] : []),
      ...all("main *, header *").filter((e) => shown(e) && e.getBoundingClientRect().right > innerWidth + 1).map(name),
    ].slice(0, 5),
    // Texts with less contrast than WCAG's 4.5.
    faint: () => {
      const seen = new Map();
      for (const e of all("body *").filter((e) => shown(e) && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))) {
        const style = getComputedStyle(e), key = style.color + JSON.stringify(back(e));
        if (seen.has(key)) continue;
        const [light, dark] = [luminance(rgb(style.color)), luminance(back(e))].sort((a, b) => b - a);
        seen.set(key, (light + 0.05) / (dark + 0.05) < 4.5 ? name(e) + " " + key : "");
      }
      return [...seen.values()].filter(Boolean);
    },
    icon: () => document.querySelector("link[rel~=icon]")?.href ?? "",
    dark: () => luminance(back(document.body)) < 0.2,
    below: (selector) => all(selector).filter((e) => !shown(e) || e.getBoundingClientRect().bottom > innerHeight).map(text),
    texts: (selector) => all(selector).map(text),
    missing: (selector) => all(selector).filter((e) => !shown(e) && text(e)).map(text).slice(0, 5),
    live: () => document.querySelector("#live").textContent,
    controls: () => all("a[href], button, input:not([type=hidden]), summary").filter(shown).map(name),
    focused: () => name(document.activeElement),
    visible: () => {
      const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
      return e.matches(":focus-visible") && style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 2
        && box.bottom > 0 && box.top < innerHeight;
    },
    blur: () => {
      document.activeElement.blur();
      getSelection().removeAllRanges();
      const top = document.createElement("span"); // Tab begins again at the top of the page
      top.tabIndex = -1;
      document.body.prepend(top);
      top.focus();
      top.remove();
    },
  };
})();
0;
