/**
 * Draws one bar for each nest box.
 * @todo show the weeks in which nobody counted
 */
export function bars(totals, width) {
  const most = Math.max(1, ...Object.values(totals));
  return Object.entries(totals).map(([box, total]) => ({
    box,
    length: Math.round((total / most) * width), // XXX rounds small counts to nothing
  }));
}

// todo: colours for people who cannot tell red from green
export const colour = (box) => (box.endsWith("4") ? "crimson" : "seagreen");
