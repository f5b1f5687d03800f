"use strict";
// Asks for a newer state of the page every second and hands it to the page's own script.
(() => {
  const { address } = document.body.dataset;
  let { version } = document.body.dataset;
  const SHOWN = 1000;
  const HIDDEN = 5000;
  const said = document.getElementById("connection");
  const say = (text) => {
    said.textContent = text;
    said.hidden = text === "";
  };
  let timer = 0;
  let isAsking = false;
  // A long journal is read in pieces: the next one is asked for at once.
  let isBehind = document.body.dataset.behind === "yes";
  const pause = () => {
    if (isBehind) return 0;
    return document.hidden ? HIDDEN : SHOWN;
  };

  const show = (content) => {
    const now = [...document.querySelectorAll("main > section")].map((section) => section.id);
    // Another kind of page, as of a directory that was replaced: build it from the start.
    if (now.join() !== Object.keys(content.sections).join()) location.reload();
    document.querySelector("h1").textContent = content.title;
    window.lpzero.update(content);
    isBehind = content.behind;
    version = content.version;
    document.body.dataset.version = version;
  };

  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    clearTimeout(timer);
    let isOver = false;
    try {
      const mark = address.includes("?") ? "&" : "?";
      const answer = await fetch(`${address}${mark}seen=${version}`, { cache: "no-store" });
      if (answer.status === 200) show(await answer.json());
      isOver = answer.status === 403;
      if (isOver) say("The dashboard was started again: open the address that it printed.");
      else if (answer.status === 404) say("The run is no longer there.");
      else say(answer.ok ? "" : "The dashboard could not read the run.");
    } catch {
      say("The dashboard does not answer. The page goes on when it does.");
    }
    isAsking = false;
    if (!isOver) timer = setTimeout(ask, pause());
  };

  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  timer = setTimeout(ask, pause());
})();
