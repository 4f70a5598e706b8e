// Search, zoom and keys for a flame graph, which is laid out again for the width of the window. The
// picture is complete without this script: it only hides, widens, moves and marks what is there, and
// asks for nothing from outside.
(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg";
  var HTML = "http://www.w3.org/1999/xhtml";
  var root = document.documentElement;
  var area = root.querySelector("#frames");
  if (!area) return;
  var number = function (name) { return Number(area.getAttribute("data-" + name)); };
  var LEFT = number("left");
  var WIDTH = number("width");
  var CHAR = number("char");
  var ROW = number("row");
  var TOP = number("top");
  var HEIGHT = number("bottom") - TOP;
  var PADDING = 3;
  // Of the title, in whose line the controls are where there is room.
  var LARGE = 15 / 12;
  var CONTROLS = 600;
  var NARROW = 800;
  var LEAST = 280;
  var UP = area.getAttribute("data-root") === "bottom";

  function frameOf(g) {
    var rect = g.querySelector("rect");
    var stub = g.querySelector("polygon");
    var title = g.querySelector("title").textContent;
    // What a title has before its figures.
    var name = title.slice(0, Number(g.getAttribute("data-k")));
    // Where the start of a path may be left out.
    var breaks = g.getAttribute("data-b");
    var frame = {
      g: g, rect: rect, stub: stub, title: title, name: name, breaks: breaks ? breaks.split(" ").map(Number) : [],
      shown: g.getAttribute("data-n") || name, text: g.querySelector("text"),
      isShown: true, isAround: false, isHit: false,
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
    // Where it is drawn now.
    frame.left = frame.x;
    frame.wide = frame.w;
    return frame;
  }

  function drawn(name, kind, parent) {
    var it = document.createElementNS(SVG, name);
    it.setAttribute("class", kind);
    return parent.appendChild(it);
  }

  var zoomed = null;
  var chosen = null;
  var isSearched = false;
  var frames = Array.prototype.map.call(area.children, frameOf);
  // A search changes these instead of each frame, which takes a tenth of the time. The names are above them
  // and stay as they are.
  var veil = drawn("path", "veil", area);
  var hits = drawn("path", "hits", area);
  var names = drawn("g", "names", area);
  var ring = drawn("path", "ring", area);
  frames.forEach(function (frame) {
    if (frame.text) names.appendChild(frame.text);
    dress(frame);
  });
  // The room for the frames, which are laid out in WIDTH.
  var plot = WIDTH;

  // Characters above the Latin, Greek and Cyrillic ones may be twice as wide.
  function columnsOf(text) {
    var columns = 0;
    for (var i = 0; i < text.length; i += 1) columns += text.charCodeAt(i) > 0x10ff ? 2 : 1;
    return columns;
  }

  // The start of a text, in this number of columns.
  function cut(text, room) {
    if (columnsOf(text) <= room) return text;
    var start = "";
    var used = 0;
    Array.from(text).every(function (letter) {
      used += columnsOf(letter);
      if (used < room) start += letter;
      return used < room;
    });
    return start + "…";
  }

  // As much of a frame's name as there is room for: of a path its end, which tells functions apart.
  function shortened(frame, room) {
    var name = frame.shown;
    if (room < 3) return "";
    if (columnsOf(name) <= room) return name;
    var end = frame.breaks.find(function (at) { return room >= 12 && columnsOf(name.slice(at)) < room; });
    return end === undefined ? cut(name, room) : "…" + name.slice(end);
  }

  // The lines of a text; words that are too long are divided.
  function lines(text, room) {
    var found = [""];
    text.split(" ").forEach(function (word, index) {
      var last = found.length - 1;
      if (index && columnsOf(found[last]) + 1 + columnsOf(word) <= room) {
        found[last] += " " + word;
        return;
      }
      var letters = Array.from(word);
      for (var at = 0; at === 0 || at < letters.length; at += room) {
        var part = letters.slice(at, at + room).join("");
        if (index || at) found.push(part);
        else found[0] = part;
      }
    });
    return found;
  }

  // The text that an element had at first: its lines are divided again for each width.
  var texts = new Map();
  function textOf(element) {
    if (!texts.has(element)) texts.set(element, element.textContent);
    return texts.get(element);
  }

  // Writes a text in lines below each other; returns their number.
  function paragraph(text, x, y, written) {
    text.textContent = "";
    text.setAttribute("x", x);
    text.setAttribute("y", y);
    written.forEach(function (line, index) {
      var span = document.createElementNS(SVG, "tspan");
      span.setAttribute("x", x);
      if (index) span.setAttribute("dy", ROW);
      span.textContent = index + 1 < written.length ? line + " " : line;
      text.appendChild(span);
    });
    return written.length;
  }

  function write(frame, w) {
    var text = shortened(frame, Math.floor((w - 2 * PADDING) / CHAR));
    if (!frame.text && !text) return;
    if (!frame.text) {
      frame.text = drawn("text", "", names);
      frame.text.setAttribute("y", frame.y + frame.h - 4);
      dress(frame);
    }
    if (frame.text.textContent !== text) frame.text.textContent = text;
  }

  // Gives a name the colours that can be read on its frame.
  function dress(frame) {
    if (!frame.text) return;
    var isOnLines = frame.rect && /^(i|mark)/.test(frame.rect.getAttribute("class"));
    var isOnPage = frame.isAround || (isSearched && frame.rect && !frame.isHit);
    var kinds = [frame.stub && "on-stub", isOnLines && "on-lines", isOnPage && "on-page"];
    frame.text.setAttribute("class", kinds.filter(Boolean).join(" "));
  }

  function show(frame, isShown) {
    if (frame.isShown === isShown) return;
    frame.isShown = isShown;
    frame.g.style.display = isShown ? "" : "none";
    if (frame.text) frame.text.style.display = isShown ? "" : "none";
  }

  // The edges of frames that are shown.
  function edges(of) {
    var places = of.filter(function (frame) { return frame.isShown; }).map(function (frame) {
      var x = frame.left.toFixed(2), w = frame.wide.toFixed(2);
      return "M" + x + " " + frame.y + "h" + w + "v" + frame.h + "h-" + w + "z";
    });
    return places.join("");
  }

  // Marks what was found, and the chosen frame, where they are drawn now.
  function mark() {
    var found = edges(frames.filter(function (frame) { return frame.isHit; }));
    hits.setAttribute("d", found);
    var all = "M" + LEFT + " " + TOP + "h" + plot + "v" + HEIGHT + "h-" + plot + "z";
    veil.setAttribute("d", isSearched ? all + found : "");
    ring.setAttribute("d", chosen ? edges([chosen]) : "");
  }

  function place(frame, x, w) {
    if (frame.left === x && frame.wide === w) return;
    frame.left = x;
    frame.wide = w;
    if (frame.rect) {
      frame.rect.setAttribute("x", x);
      frame.rect.setAttribute("width", w);
    } else {
      var y = frame.y, h = frame.h;
      frame.stub.setAttribute("points", [x, y, x + w, y, x + w, y + h, x, y + h].join(" "));
    }
    write(frame, w);
    if (frame.text) frame.text.setAttribute("x", x + PADDING);
  }

  // Shows what stands on this frame, and what it stands on, over the whole width; all for null.
  function zoom(to) {
    zoomed = to;
    var x0 = to ? to.x : LEFT;
    var scale = plot / (to ? to.w : WIDTH);
    frames.forEach(function (frame) {
      var middle = frame.x + frame.w / 2;
      var outward = to && (UP ? frame.y > to.y : frame.y < to.y);
      var below = outward && frame.rect && frame.x <= to.x + to.w / 2 && frame.x + frame.w >= to.x + to.w / 2;
      var inside = !to || (!outward && middle >= to.x && middle <= to.x + to.w);
      show(frame, Boolean(below || inside));
      if (Boolean(below) !== frame.isAround) {
        frame.isAround = Boolean(below);
        frame.g.classList.toggle("around", frame.isAround);
        dress(frame);
      }
      if (below) place(frame, LEFT, plot);
      else if (inside) place(frame, LEFT + (frame.x - x0) * scale, frame.w * scale);
    });
    mark();
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
    isSearched = Boolean(test);
    var spans = [];
    frames.forEach(function (frame) {
      frame.isHit = Boolean(test && frame.rect && test(frame.name));
      if (frame.isHit) spans.push([frame.x, frame.x + frame.w]);
      dress(frame);
    });
    mark();
    // Frames on each other are the same samples, which count once.
    spans.sort(function (a, b) { return a[0] - b[0]; });
    var sum = 0;
    var end = LEFT;
    spans.forEach(function (span) {
      sum += Math.max(0, span[1] - Math.max(end, span[0]));
      end = Math.max(end, span[1]);
    });
    found.textContent = test ? "found: " + (100 * sum / WIDTH).toFixed(1) + "% of the whole width" : "";
  }

  // Says what a frame is, above the frames: as much of its short name as leaves room for its figures.
  function tell(frame) {
    var room = Math.floor(plot / CHAR);
    // Lines end between words, and not between a number and its unit.
    var figures = frame ? frame.title.slice(frame.name.length).replace(/(\d) (?=[^ ]{1,2}[,;)])/g, "$1\u00a0") : "";
    var name = frame ? shortened(frame, Math.max(12, (room - 12) * told.lines - columnsOf(figures))) : "";
    paragraph(told.text, LEFT, told.y, lines(name + figures, room));
  }

  function choose(frame) {
    chosen = frame;
    ring.setAttribute("d", edges([chosen]));
    tell(chosen);
  }

  // The frame beside another one that is shown, if there is one.
  function neighbour(frame, key) {
    var inward = UP ? "ArrowUp" : "ArrowDown";
    var outward = UP ? "ArrowDown" : "ArrowUp";
    var step = key === inward ? (UP ? -ROW : ROW) : key === outward ? (UP ? ROW : -ROW) : 0;
    var all = frames.filter(function (other) { return other.isShown && other !== frame && other.y === frame.y + step; });
    var middle = frame.x + frame.w / 2;
    if (key === outward) return all.find(function (other) { return other.x <= middle && middle <= other.x + other.w; });
    if (key === inward) {
      return all.filter(function (other) { return other.x >= frame.x - 0.01 && other.x + other.w <= frame.x + frame.w + 0.01; })
        .sort(function (a, b) { return b.w - a.w; })[0];
    }
    var right = key === "ArrowRight";
    return all.filter(function (other) { return right ? other.x > frame.x : other.x < frame.x; })
      .sort(function (a, b) { return right ? a.x - b.x : b.x - a.x; })[0];
  }

  function control(name, width) {
    var place = document.createElementNS(SVG, "foreignObject");
    place.setAttribute("width", width);
    place.setAttribute("height", 26);
    var it = document.createElementNS(HTML, name);
    place.appendChild(it);
    root.appendChild(place);
    return it;
  }

  function move(control, x, y) {
    control.parentNode.setAttribute("x", x);
    control.parentNode.setAttribute("y", y);
  }

  var found = control("div", 190);
  var reset = control("button", 95);
  var input = control("input", 175);
  found.className = "found";
  found.setAttribute("role", "status");
  reset.textContent = "Reset zoom";
  reset.style.display = "none";
  input.setAttribute("type", "search");
  input.setAttribute("placeholder", "Search: regex, key /");
  input.setAttribute("aria-label", "Search functions");
  input.addEventListener("input", function () { search(input.value); });
  reset.addEventListener("click", function () { zoom(null); });

  var title = root.querySelector(".title");
  var facts = Array.prototype.slice.call(root.querySelectorAll(".head"));
  var foot = root.querySelector("#foot");
  var page = root.querySelector(".page");
  var whole = root.querySelector("title").textContent;
  var told = { text: document.createElementNS(SVG, "text"), y: 0, lines: 1 };
  told.text.setAttribute("class", "told");
  told.text.setAttribute("role", "status");
  root.insertBefore(told.text, area);

  // Lays the picture out for a width.
  function layOut(width) {
    plot = width - 2 * LEFT;
    var isNarrow = width < NARROW;
    var room = Math.floor(plot / CHAR);
    var y = 12 + ROW;
    if (isNarrow) {
      y += ROW * paragraph(title, LEFT, y, lines(whole, Math.floor(room / LARGE)));
    } else {
      paragraph(title, LEFT, y, [cut(whole, Math.floor((plot - CONTROLS) / CHAR / LARGE))]);
      y += ROW;
    }
    facts.forEach(function (fact) { y += ROW * paragraph(fact, LEFT, y, lines(textOf(fact), room)); });
    if (isNarrow) {
      move(input, LEFT, y - 10);
      move(reset, LEFT + 180, y - 10);
      move(found, LEFT, y + 16);
      y += 3 * ROW + 8;
    } else {
      move(found, LEFT + plot - CONTROLS, 4);
      move(reset, LEFT + plot - 280, 4);
      move(input, LEFT + plot - 175, 4);
    }
    found.style.textAlign = isNarrow ? "left" : "right";
    told.y = y;
    told.lines = Math.max(1, Math.ceil(160 / room));
    var top = y + ROW * (told.lines - 1) + Math.floor(ROW / 2);
    area.setAttribute("transform", "translate(0 " + (top - TOP) + ")");
    var end = legend(top + HEIGHT + ROW, room);
    [root, page].forEach(function (it) {
      it.setAttribute("width", width);
      it.setAttribute("height", end);
    });
    root.setAttribute("viewBox", "0 0 " + width + " " + end);
    zoom(zoomed);
    tell(chosen);
  }

  // What is below the frames, from this place on; returns where it ends.
  function legend(y, room) {
    Array.prototype.forEach.call(foot.children, function (part) {
      if (part.localName === "text") {
        y += ROW * paragraph(part, LEFT, y, lines(textOf(part), room));
        return;
      }
      var x = LEFT;
      var high = 0;
      for (var i = 0; i + 1 < part.children.length; i += 2) {
        var sample = part.children[i];
        var text = part.children[i + 1];
        var width = 18 + (columnsOf(textOf(text)) + 3) * 8;
        if (x > LEFT && x + width > LEFT + plot) {
          y += ROW * high;
          x = LEFT;
          high = 0;
        }
        sample.setAttribute("x", x);
        sample.setAttribute("y", y - 11);
        high = Math.max(high, paragraph(text, x + 18, y, lines(textOf(text), Math.floor((plot - 18) / CHAR))));
        x += width;
      }
      y += ROW * high;
    });
    return y;
  }

  var byGroup = new Map(frames.map(function (frame) { return [frame.g, frame]; }));
  function frameOfEvent(event) {
    return byGroup.get(event.target.closest("#frames > g"));
  }

  area.setAttribute("tabindex", "0");
  area.setAttribute("role", "application");
  area.setAttribute("aria-label", "Frames: arrow keys move, Enter zooms, Escape resets");
  area.addEventListener("click", function (event) {
    var frame = frameOfEvent(event);
    if (frame) choose(frame);
    if (frame && frame.rect) zoom(frame === zoomed ? null : frame);
  });
  area.addEventListener("mouseover", function (event) { tell(frameOfEvent(event) || chosen); });
  area.addEventListener("mouseleave", function () { tell(chosen); });
  area.addEventListener("keydown", function (event) {
    if (event.key.indexOf("Arrow") === 0) {
      event.preventDefault();
      var first = frames.find(function (frame) { return frame.isShown; });
      var next = chosen && chosen.isShown ? neighbour(chosen, event.key) : zoomed || first;
      if (next) {
        choose(next);
        next.g.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    } else if (event.key === "Enter" && chosen && chosen.rect) {
      zoom(chosen === zoomed ? null : chosen);
    }
  });
  root.addEventListener("keydown", function (event) {
    if (event.key === "/" && event.target !== input) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape") {
      input.value = "";
      search("");
      if (zoomed) zoom(null);
    }
  });

  // A picture within a page keeps the size that it was drawn in.
  var isAlone = root.localName === "svg";
  var width = function () { return isAlone ? Math.max(LEAST, root.clientWidth || window.innerWidth) : WIDTH + 2 * LEFT; };
  var current = 0;
  function fit() {
    if (width() === current) return;
    current = width();
    layOut(current);
  }
  fit();
  // A scroll bar that comes with the height takes some of the width.
  fit();
  if (isAlone) window.addEventListener("resize", function () { window.requestAnimationFrame(fit); });
})();
