// Polls the part of the page that changes, and sends the buttons' posts.
const live = document.getElementById("live");
async function refresh() {
  if (!live || document.hidden) return;
  try {
    const answer = await fetch(live.dataset.poll);
    if (!answer.ok) return;
    const text = await answer.text();
    // Leave a focused button alone: swapping it would lose the focus.
    const focused = live.contains(document.activeElement) ? document.activeElement.dataset?.post : null;
    live.innerHTML = text;
    if (focused) live.querySelector(`[data-post="${focused}"]`)?.focus();
  } catch { /* the service is away; the next poll tries again */ }
}
setInterval(refresh, 2000);
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-post]");
  if (!button || (button.dataset.confirm && !confirm(button.dataset.confirm))) return;
  button.disabled = true;
  await fetch(button.dataset.post, { method: "POST" });
  await refresh();
});
