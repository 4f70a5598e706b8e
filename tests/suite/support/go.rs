//! A program in Go, built in several ways.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::ran;

/// A program whose innermost function has no frame, so that frame pointers lose its caller.
pub const SOURCE: &str = r#"package main

import "os"

type T struct{ n int }

//go:noinline
func (t *T) Spin(k int) int {
	s := 0
	for i := 0; i < k; i++ {
		s = leaf(s, i)
	}
	t.n += s
	return s
}

//go:noinline
func leaf(a, b int) int {
	for j := 0; j < 50; j++ {
		a = a*31 + b ^ j
	}
	return a
}

func Map[A any, B any](a []A, f func(A) B) []B {
	var out []B
	for _, x := range a {
		out = append(out, f(x))
	}
	return out
}

//go:noinline
func hot(n int) int {
	t := &T{}
	r := 0
	for i := 0; i < n; i++ {
		r += t.Spin(1000)
	}
	return r
}

func main() {
	c := make(chan int)
	go func() { c <- hot(1500) }()
	r := hot(3000) + <-c
	if len(Map([]int{r}, func(x int) string { return string(rune(x)) })) > 1 {
		os.Exit(3)
	}
}
"#;

/// Builds the program; `None`, and the test reports that it is skipped, where Go is missing.
pub fn build(folder: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    fs::write(folder.join("main.go"), SOURCE).unwrap();
    let program = folder.join(name);
    let mut go = Command::new("go");
    go.current_dir(folder).arg("build").arg("-o").arg(&program);
    go.args(flags).arg("main.go").env("GOTOOLCHAIN", "local");
    go.env("GOCACHE", folder.join("cache")).env("GOFLAGS", "");
    ran(&mut go).map(|_| program)
}
