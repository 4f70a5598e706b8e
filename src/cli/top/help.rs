//! What the keys do, and what the figures are.

use super::app::App;

macro_rules! figures {
    () => {
        "\
FIGURES
  self       weight of the samples taken in the function itself
  total      weight of the samples with the function on the stack; a sample
             counts once, however often the function is on its stack
  at most    the total if the function was on every incomplete stack that may
             lack it; ? if it is unknown whether it can be that large
  ≈f         most samples lacked this frame of f; it was restored from the code
  f... (N %) tree: a collapsed call of f, which N % of the samples passed;
             their stacks continue under the nearest f above
  via collapsed %  tree: the part of total % that came through such calls
  ⋯ N frames: std → f  tree: a chain of calls outside of the project's code
             with nearly the same total; callees under 0.5 % of its other
             frames are not shown
  ≥ calls    at least: not all calls of the function can be counted
  children   graph: weight of the function's callees when called by this caller
  outside    cycles: weight of callees outside the cycle
  fonseca    cycles: an estimate of the total from the weights of calls"
    };
}

pub fn text(app: &App) -> &'static str {
    if app.is_recording() {
        HELP_OF_RECORDING
    } else {
        HELP
    }
}

const HELP: &str = concat!(
    "\
VIEWS
  1 2 3 4    flat, graph, tree, cycles; Tab and Shift-Tab switch between them
  Enter      flat: callers and callees of the function
             graph: go to this caller or callee
             tree: open or close; on f... go to the nearest f above
             cycles: callers and callees of the function, or of the callee
  g          callers and callees of the function, from any view
  Backspace  graph: back to the previous function, and finally to flat

MOVING
  arrows j k PgUp PgDn Ctrl-U Ctrl-D End G    Home: always the first line
  The selected function stays selected when the order changes.

WHAT IS SHOWN
  /          show only functions whose name, in full or as it is shown, matches
             a regular expression; percentages do not change
  f          show only stacks with such a function; they are then 100 %
  Esc        clear the filter; again: clear the focus
  s          flat: sort by self weight, by total, by name
  c          tree: collapse recursion: none, direct, conservative, full
  e          tree: open the heaviest path from here
  u          tree: show every frame of folded chains of calls, or fold them
  right left tree: open; close, or go to the line above
  E          the next event, if several are sampled

TIME
  p Space    pause the display; sampling continues
  d          fade weights with a half-life, or count all samples in full
  < >        halve, double the half-life
  z          zero: count from now on

  w          write all samples since the start or the reset, without fading or
             filter, as a recording for the other commands
  i          how reliable the stacks are, and what is unknown
  Ctrl-L     redraw the screen
  Ctrl-Z     stop, with the command that was started; fg continues
  q Ctrl-C   quit, and end the command that was started

",
    figures!()
);

const HELP_OF_RECORDING: &str = concat!(
    "\
VIEWS
  1 2 3 4    flat, graph, tree, cycles; Tab and Shift-Tab switch between them
  Enter      the function in detail: callers, descendants, lines, depth
  a          its source lines; a again: its machine code
  g          callers and callees of the function, from any view; graph: go to
             this caller or callee
  Backspace  graph: back to the previous function, and finally to flat

MOVING
  arrows j k PgUp PgDn Ctrl-U Ctrl-D Home End G
  On a page about a function: / finds a regular expression, n and N go to the
  next line with it and the one before, Esc closes

WHAT IS SHOWN
  /          show only functions whose name, in full or as it is shown, matches
             a regular expression; percentages do not change
  f          show only stacks with such a function; they are then 100 %
  t          show only a command, process or thread, by name or number
  T          read only a part of the time: A..B in seconds after the first
             sample; either may be missing
  Esc        clear the filter; again: the focus, the thread, the time
  s          flat: sort by self weight, by total, by name, by change (--base)
  c          tree: collapse recursion: none, direct, conservative, full
  e          tree: open the heaviest path from here
  u          tree: show every frame of folded chains of calls, or fold them
  Space      tree: open or close; on f... go to the nearest f above
  right left tree: open; close, or go to the line above
  E          the next event, if several were sampled

  i          how reliable the stacks are, and what is unknown
  Ctrl-L     redraw the screen
  Ctrl-Z     stop; fg continues
  q Ctrl-C   quit

",
    figures!()
);
