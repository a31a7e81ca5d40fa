package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/unitchecker"
)

func TestMain(m *testing.M) {
	if calledByVet() {
		unitchecker.Main(checks()...)
	}
	os.Exit(m.Run())
}

// planted has a fault of each kind; what is to be found is behind "want".
var planted = map[string]string{
	"go.mod": "module planted\n\ngo 1.26\n",
	"served/served.go": `package served

import "fmt"

func Print(n int) { fmt.Printf("%s\n", n) } // want fmt.Printf format %s has arg n of wrong type int // want Printf format %s has arg #1 of wrong type int (SA5009)

func Same(n int) bool { return n == n } // want identical expressions on the left and right side of the '==' operator (SA4000)

func idle() {} // want func idle is unused (U1000)

func tested() {} // want func tested is used by tests only (U1000)
`,
	"served/served_test.go": `package served

import "testing"

func TestTested(t *testing.T) {
	tested()
	var err error
	_ = err == nil && err == nil // want redundant and: err == nil && err == nil // want identical expressions on the left and right side of the '&&' operator (SA4000)
}

func helper() {} // want func helper is unused (U1000)
`,
	"model/model.go": `package model

func state() {} // a package that exports nothing is there for its tests

func forgotten() {} // want func forgotten is unused (U1000)
`,
	"model/model_test.go": `package model

import "testing"

func TestState(*testing.T) { state() }
`,
}

func TestVet_FindsWhatIsPlanted(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for name, text := range planted {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			for _, w := range strings.Split(line, " // want ")[1:] {
				want = append(want, filepath.Base(name)+": "+strings.TrimSpace(w))
			}
		}
	}
	var out strings.Builder
	if err := run(dir, []string{"./..."}, &out); err == nil {
		t.Error("run reports no failure")
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if place, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			file, _, _ := strings.Cut(filepath.Base(place), ":")
			got = append(got, file+": "+text)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s\nin all:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), out.String())
	}
}

func TestVet_SaysNothingOfWhatIsRight(t *testing.T) {
	var out strings.Builder
	if err := run(".", []string{"."}, &out); err != nil || out.Len() > 0 {
		t.Errorf("%v\n%s", err, out.String())
	}
}
