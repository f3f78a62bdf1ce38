// The key came in the address, and goes with it: what keeps it belongs to this port alone, other than
// a cookie. It is there before the terminal asks for the screen, which it does when all is loaded.
const said = window.location.hash.slice(1);
if (said) {
  sessionStorage.setItem("key", said);
  history.replaceState(null, "", "/");
}
const key = sessionStorage.getItem("key");
if (key) {
  document.getElementById("terminal").dataset.sessionWebsocketUrl += `/${key}`;
} else {
  document.getElementById("ended").textContent =
    "Open the whole address that queen watch printed: in a new window, it is needed again.";
}
// The screen is drawn on this machine, which does not know what the browser likes.
const theme = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
document.cookie = `queen-watch-theme=${theme}; path=/; samesite=strict`;
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
