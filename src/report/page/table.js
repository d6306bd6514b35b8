// A table that sorts by any column. A column has a title, value(row) to sort by, and maybe show(row): text or an element.
// Its rows become cards on a small screen; the roles keep it a table to screen readers then.
function sortableTable({ caption, columns, rows, sortBy, most = 100 }) {
  const head = element("tr"), body = element("tbody");
  const table = element("table", null, element("caption", null, caption), element("thead", null, head), body);
  const more = element("button", "more");
  let sorted = sortBy, descending = sortBy !== undefined, shown = most;
  more.type = "button";
  more.addEventListener("click", () => {
    shown = rows.length;
    fill();
  });

  table.setAttribute("role", "table");
  head.setAttribute("role", "row");

  const headings = columns.map((column, index) => {
    const button = element("button", null, column.title);
    const cell = element("th", column.isText ? null : "number", button);
    cell.scope = "col";
    cell.setAttribute("role", "columnheader");
    button.type = "button";
    button.addEventListener("click", () => {
      descending = sorted === index ? !descending : !column.isText;
      sorted = index;
      fill();
    });
    head.append(cell);
    return { cell, button, column };
  });

  function compare(a, b) {
    const value = columns[sorted].value, left = value(a), right = value(b);
    const order = typeof left === "string" ? left.localeCompare(right) : left - right;
    return descending ? -order : order;
  }

  function rowOf(row) {
    const line = element("tr", null, ...columns.map((column) => {
      const kind = column.isLong ? "text long" : column.isText ? "text" : "number";
      const cell = element("td", kind, (column.show || column.value)(row));
      cell.dataset.title = column.title;
      cell.setAttribute("role", "cell");
      return cell;
    }));
    line.setAttribute("role", "row");
    line.dataset.row = rows.indexOf(row);
    return line;
  }

  function fill() {
    headings.forEach(({ cell, button, column }, index) => {
      const here = index === sorted;
      cell.setAttribute("aria-sort", here ? (descending ? "descending" : "ascending") : "none");
      button.textContent = column.title + (here ? (descending ? " ▾" : " ▴") : "");
    });
    const ordered = sorted === undefined ? rows : rows.slice().sort(compare);
    body.replaceChildren(...ordered.slice(0, shown).map(rowOf));
    more.hidden = shown >= rows.length;
    more.textContent = `Show all ${words.grouped(rows.length)}`;
  }

  fill();
  const frame = element("div", "wide", table);
  frame.tabIndex = 0; // what scrolls sideways on a small screen must be reachable
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", caption);
  return element("div", null, frame, more);
}
