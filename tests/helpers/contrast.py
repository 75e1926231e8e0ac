"""The contrast of every text of a page (WCAG 2.2, 1.4.3), as a script that a browser runs."""

CONTRAST = """
() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parts(color).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if ((parts(color)[3] ?? 1) > 0) return color;
    }
  };
  const found = {};
  for (const node of document.querySelectorAll("*")) {
    const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!own || !node.checkVisibility() || node.disabled) continue;
    const [one, other] = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
    const name = `${node.parentNode.className} ${node.nodeName} ${node.className}`;
    found[name] = Math.min(found[name] ?? 21, (one + 0.05) / (other + 0.05));
  }
  return found;
}
"""
"""The least ratio of each kind of element, by its parent, name and class."""
