// Keys of `adjudge label`: the key of a button presses it, n writes a note, t shows the whole text.
addEventListener("keydown", (event) => {
  const note = document.getElementById("note");
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target === note) {
    if (event.key === "Escape") note.blur();
    return;
  }
  const button = document.querySelector(`button[data-key="${CSS.escape(event.key)}"]:enabled`);
  const whole = document.getElementById("whole");
  if (button) button.click();
  else if (event.key === "n" && note) note.focus();
  else if (event.key === "t" && whole) whole.open = !whole.open;
  else return;
  event.preventDefault();
});

// A second press while the first is on its way would label the next item unseen.
addEventListener("submit", (event) => {
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
