"use strict";
// Keeps the page up to date: the server makes it, and its <main> replaces the one that is shown.
(() => {
  const main = document.querySelector("main");
  const live = document.querySelector("#live");
  const every = Number(document.body.dataset.every || 1000);
  const verdict = (page) => page.querySelector("#verdict")?.textContent ?? "";

  // A screen reader says the verdict when it changes, and not each second.
  const spoken = document.createElement("span");
  spoken.setAttribute("role", "status");
  spoken.style.position = "absolute";
  spoken.style.clipPath = "inset(50%)";
  document.body.append(spoken);

  let paused = false;
  const button = document.createElement("button");
  button.type = "button";
  const label = () => { button.textContent = paused ? "Go on" : "Pause"; };
  button.addEventListener("click", () => { paused = !paused; label(); });
  label();
  live.after(" ", button);

  // What a person types, opens or marks stays.
  const busy = () => main.querySelector("details[open]") !== null
    || (main.contains(document.activeElement) && document.activeElement.matches("input, form[method=post] *"))
    || [...main.querySelectorAll("form[method=post] input[name=typed]")].some((input) => input.value !== "")
    || !getSelection().isCollapsed;

  const replace = (next) => {
    const name = (element) => element.closest("section")?.getAttribute("aria-labelledby") + element.tagName + (element.getAttribute("href") ?? element.textContent);
    const same = (as) => [...main.querySelectorAll("a, button")].filter((element) => name(element) === as);
    const focused = main.contains(document.activeElement) ? name(document.activeElement) : "";
    const at = same(focused).indexOf(document.activeElement);
    const before = verdict(main);
    main.replaceChildren(...next.childNodes);
    if (verdict(main) !== before) spoken.textContent = verdict(main);
    (same(focused)[at] ?? same(focused)[0])?.focus({ preventScroll: true });
  };

  const load = async () => {
    if (document.hidden || paused || busy()) return;
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (paused || busy()) return;
      replace(page.querySelector("main"));
      document.title = page.title;
      live.textContent = page.querySelector("#live").textContent;
      document.body.classList.remove("stale");
    } catch {
      if (!document.body.classList.contains("stale")) live.textContent += ": the process does not answer";
      document.body.classList.add("stale");
    }
  };
  const again = async () => { await load(); setTimeout(again, every); };
  setTimeout(again, every);
})();
