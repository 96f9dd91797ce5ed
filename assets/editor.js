// The spec's editor: numbers beside the lines, marks where something is wrong, and the way there.
const gutter = document.querySelector("#gutter");
const field = () => document.querySelector("#spec");

function number() {
  const wrong = new Map([...document.querySelectorAll("#check [data-line]")]
    .map((item) => [Number(item.dataset.line), item.textContent.trim()]));
  const lines = field().value.split("\n").length;
  gutter.replaceChildren(...Array.from({ length: lines }, (_, i) => {
    const line = document.createElement("span");
    line.textContent = i + 1;
    if (wrong.has(i + 1)) {
      line.className = "wrong";
      line.title = wrong.get(i + 1);
    }
    return line;
  }));
  gutter.scrollTop = field().scrollTop;
}

document.addEventListener("scroll", (event) => {
  if (event.target === field()) gutter.scrollTop = field().scrollTop;
}, true);
document.addEventListener("input", (event) => event.target === field() && number());
document.addEventListener("htmx:afterSettle", number);

// What was typed while a field's answer was on its way stays; a check of it follows and sets the fields.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target === field() && detail.requestConfig.parameters.spec !== field().value) detail.shouldSwap = false;
});

// A mistake's line is selected and brought into view.
document.addEventListener("click", (event) => {
  const item = event.target.closest("#check [data-line] a");
  if (!item) return;
  event.preventDefault();
  const spec = field();
  const before = spec.value.split("\n").slice(0, item.parentElement.dataset.line - 1);
  const start = before.reduce((sum, line) => sum + line.length + 1, 0);
  const end = spec.value.indexOf("\n", start);
  spec.focus();
  spec.setSelectionRange(start, end < 0 ? spec.value.length : end);
  spec.scrollTop = Math.max(0, before.length - 5) * parseFloat(getComputedStyle(spec).lineHeight);
});
number();
