// The key came in the address, and goes with it: what keeps it belongs to this port alone, other than
// a cookie.
const given = location.hash.slice(1);
if (given.length > 40) {
  sessionStorage.setItem("key", given);
  history.replaceState(null, "", "/");
}
const key = sessionStorage.getItem("key");
const by = (id) => document.getElementById(id);
const title = document.title;
const name = (button) => `[data-act="${button.dataset.act}"][data-about="${CSS.escape(button.dataset.about)}"]`;

// The parts are HTML in which the server has escaped all texts of others.
function show(parts) {
  for (const [id, html] of Object.entries(parts)) {
    if (id === "title") {
      document.title = html + title;
      continue;
    }
    const part = by(id);
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const places = [...part.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    part.innerHTML = html;
    part.querySelectorAll(".scroll").forEach((each, n) => { each.scrollLeft = places[n] ?? 0; });
    if (focused?.dataset.act) part.querySelector(name(focused))?.focus();
  }
}

function follow() {
  const events = new EventSource(`/events/${key}`);
  events.onmessage = (event) => {
    show(JSON.parse(event.data));
    by("state").textContent = "Live.";
  };
  events.onerror = () => {
    by("state").textContent = events.readyState === EventSource.CLOSED
      ? "Not connected: open the address that queen watch prints."
      : "The connection is lost; trying again …";
  };
}

async function act(button, text) {
  button.disabled = true;
  try {
    const answer = await fetch("/act", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Queen-Key": key },
      body: JSON.stringify({ act: button.dataset.act, about: button.dataset.about, text }),
    });
    const said = answer.headers.get("Content-Type") === "application/json"
      ? await answer.json() : { message: await answer.text() };
    return { ok: answer.ok, text: said.done ?? [said.message, said.hint && `Try: ${said.hint}`].filter(Boolean).join(". ") };
  } catch {
    return { ok: false, text: "queen watch does not answer: nothing is known to be done." };
  } finally {
    button.disabled = false;
  }
}

function say({ ok, text }) {
  by("said").textContent = text;
  by("said").className = ok ? "ok" : "wrong";
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { by("said").className = ""; }, ok ? 4000 : 15000);
}

let chosen = null;

function ask(button) {
  const { question, text } = button.dataset;
  chosen = button;
  const about = button.closest("li")?.querySelector("p").textContent ?? button.dataset.about;
  by("question").textContent = question ?? `${button.textContent}: ${about}`;
  by("label").hidden = by("text").hidden = text === undefined;
  by("text").required = text !== undefined;
  by("text").value = "";
  by("refusal").textContent = "";
  by("yes").textContent = button.textContent;
  by("dialog").showModal();
  (text === undefined ? by("yes") : by("text")).focus();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-act]");
  if (!button) return;
  const { question, text } = button.dataset;
  if (question !== undefined || text !== undefined) ask(button);
  else say(await act(button, ""));
});

by("dialog").addEventListener("submit", async (event) => {
  event.preventDefault();
  by("yes").disabled = true;
  const done = await act(chosen, by("text").value);
  by("yes").disabled = false;
  if (done.ok) {
    by("dialog").close();
    say(done);
  } else {
    by("refusal").textContent = done.text;
  }
});
by("no").addEventListener("click", () => by("dialog").close());

if (key) follow();
else by("state").textContent = "Open the whole address that queen watch printed: in a new window, it is needed again.";
