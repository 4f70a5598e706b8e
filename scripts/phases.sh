# phases.sh: how long the parts of a check take. Sourced by test.sh and kits.sh.

phases=$(mktemp)

# phase NAME COMMAND…: runs it, and notes its wall time and the CPU time of all that it waited for.
phase() {
  local name=$1 status=0
  shift
  echo "== $name"
  { TIMEFORMAT="$name: %0R s, CPU %0U + %0S s"; time "$@" 2>&3 || status=$?; } 3>&2 2>>"$phases"
  return "$status"
}

# The noted phases, in the order in which they ended.
list_phases() {
  sed 's/^/  /' "$phases"
  rm -f "$phases"
}
