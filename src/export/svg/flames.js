// Search and zoom for a flame graph. The picture is complete without this script: it only hides,
// widens and marks what is there, and asks for nothing from outside.
(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg";
  var HTML = "http://www.w3.org/1999/xhtml";
  var root = document.documentElement;
  var area = root.querySelector("#frames");
  if (!area) return;
  var LEFT = Number(area.getAttribute("data-left"));
  var WIDTH = Number(area.getAttribute("data-width"));
  var CHAR = Number(area.getAttribute("data-char"));
  var PADDING = 3;

  // What a title has before its figures.
  function nameOf(title) {
    return title.replace(/ \([^()]*\)$/, "");
  }

  function frameOf(g) {
    var rect = g.querySelector("rect");
    var stub = g.querySelector("polygon");
    var title = g.querySelector("title").textContent;
    var frame = {
      g: g, rect: rect, stub: stub, title: title, name: nameOf(title),
      shown: g.getAttribute("data-n") || nameOf(title), text: g.querySelector("text"),
    };
    if (rect) {
      frame.x = Number(rect.getAttribute("x"));
      frame.w = Number(rect.getAttribute("width"));
      frame.y = Number(rect.getAttribute("y"));
      frame.h = Number(rect.getAttribute("height"));
    } else {
      var p = stub.getAttribute("points").split(/[ ,]/).map(Number);
      frame.x = p[0];
      frame.y = p[1];
      frame.w = p[2] - p[0];
      frame.h = p[5] - p[1];
    }
    return frame;
  }

  var frames = Array.prototype.map.call(area.children, frameOf);
  var zoomed = null;

  function write(frame, w) {
    var room = Math.floor((w - 2 * PADDING) / CHAR);
    if (!frame.text && room < 3) return;
    if (!frame.text) {
      frame.text = document.createElementNS(SVG, "text");
      frame.text.setAttribute("y", frame.y + frame.h - 4);
      frame.g.appendChild(frame.text);
    }
    var text = "";
    var used = 0;
    var letters = Array.from(frame.shown);
    for (var i = 0; i < letters.length && room >= 3; i += 1) {
      // Characters above the Latin, Greek and Cyrillic ones may be twice as wide.
      var wide = letters[i].codePointAt(0) > 0x10ff ? 2 : 1;
      if (used + wide > room - (i + 1 < letters.length ? 1 : 0)) {
        text += "…";
        break;
      }
      used += wide;
      text += letters[i];
    }
    frame.text.textContent = text;
  }

  function place(frame, x, w) {
    if (frame.rect) {
      frame.rect.setAttribute("x", x);
      frame.rect.setAttribute("width", w);
    } else {
      var y = frame.y, h = frame.h;
      frame.stub.setAttribute("points", [x, y, x + w, y, x + w, y + h, x, y + h].join(" "));
    }
    if (frame.rect || frame.text) write(frame, w);
    if (frame.text) frame.text.setAttribute("x", x + PADDING);
  }

  // Shows what stands on this frame, and what it stands on, over the whole width; all for null.
  function zoom(to) {
    zoomed = to;
    var x0 = to ? to.x : LEFT;
    var scale = to ? WIDTH / to.w : 1;
    var up = area.getAttribute("data-root") === "bottom";
    frames.forEach(function (frame) {
      var middle = frame.x + frame.w / 2;
      var outward = to && (up ? frame.y > to.y : frame.y < to.y);
      var below = outward && frame.rect && frame.x <= to.x + to.w / 2 && frame.x + frame.w >= to.x + to.w / 2;
      var inside = !to || (!outward && middle >= to.x && middle <= to.x + to.w);
      frame.g.style.display = below || inside ? "" : "none";
      frame.g.classList.toggle("around", Boolean(below));
      if (below) place(frame, LEFT, WIDTH);
      else if (inside) place(frame, LEFT + (frame.x - x0) * scale, frame.w * scale);
    });
    reset.style.display = to ? "" : "none";
  }

  function search(text) {
    var test = null;
    if (text) {
      try {
        var regex = new RegExp(text, "i");
        test = function (name) { return regex.test(name); };
      } catch (error) {
        test = function (name) { return name.toLowerCase().indexOf(text.toLowerCase()) >= 0; };
      }
    }
    var spans = [];
    frames.forEach(function (frame) {
      var hit = test && frame.rect && test(frame.name);
      frame.g.classList.toggle("hit", Boolean(hit));
      if (hit) spans.push([frame.x, frame.x + frame.w]);
    });
    area.classList.toggle("searched", Boolean(test));
    // Frames on each other are the same samples, which count once.
    spans.sort(function (a, b) { return a[0] - b[0]; });
    var sum = 0;
    var end = LEFT;
    spans.forEach(function (span) {
      sum += Math.max(0, span[1] - Math.max(end, span[0]));
      end = Math.max(end, span[1]);
    });
    found.textContent = test ? "found: " + (100 * sum / WIDTH).toFixed(1) + "% of the width" : "";
  }

  function control(name, x, width) {
    var place = document.createElementNS(SVG, "foreignObject");
    place.setAttribute("x", x);
    place.setAttribute("y", 4);
    place.setAttribute("width", width);
    place.setAttribute("height", 26);
    var it = document.createElementNS(HTML, name);
    place.appendChild(it);
    root.appendChild(place);
    return it;
  }

  var found = control("div", LEFT + WIDTH - 600, 190);
  var reset = control("button", LEFT + WIDTH - 300, 95);
  var input = control("input", LEFT + WIDTH - 195, 195);
  found.className = "found";
  reset.textContent = "Reset zoom";
  reset.style.display = "none";
  input.setAttribute("type", "search");
  input.setAttribute("placeholder", "Search: regex, key /");
  input.setAttribute("aria-label", "Search functions");
  input.addEventListener("input", function () { search(input.value); });
  reset.addEventListener("click", function () { zoom(null); });

  area.addEventListener("click", function (event) {
    var g = event.target.closest("#frames > g");
    var frame = frames.find(function (frame) { return frame.g === g; });
    if (frame && frame.rect) zoom(frame === zoomed ? null : frame);
  });
  root.addEventListener("keydown", function (event) {
    if (event.key === "/" && event.target !== input) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape") {
      input.value = "";
      search("");
      zoom(null);
    }
  });
})();
