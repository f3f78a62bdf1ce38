// The keys go to the terminal as soon as there is one, and again when the window comes back.
const keys = () => document.querySelector(".xterm-helper-textarea");
const waiting = new MutationObserver(() => {
  if (keys() && document.body.classList.contains("-first-byte")) {
    waiting.disconnect();
    keys().focus();
  }
});
waiting.observe(document, { attributes: true, childList: true, subtree: true });
window.addEventListener("focus", () => keys()?.focus());
