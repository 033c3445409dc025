// Pointing at a wait, a stretch or an operation lights the arrows that begin or end there.
for (const part of document.querySelectorAll('[data-arrows]')) {
  const arrows = part.dataset.arrows.split(' ').map((id) => document.getElementById(id)).filter(Boolean);
  const light = (on) => arrows.forEach((arrow) => arrow.classList.toggle('lit', on));
  part.addEventListener('mouseenter', () => light(true));
  part.addEventListener('mouseleave', () => light(false));
}
