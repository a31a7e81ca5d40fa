// Command vet runs the checks of go vet and of staticcheck, in one pass:
//
//	go -C bench/vet run . "$PWD" ./...
//
// It has go vet call itself for each package, which is type-checked once for all checks. What has not changed has its
// findings in Go's build cache. Staticcheck's own command would have all packages compiled, programs as well.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/scannererr"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
)

func main() {
	if calledByVet() {
		unitchecker.Main(checks()...)
	}
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: vet DIRECTORY PACKAGES")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:], os.Stderr); err != nil {
		if found := (*exec.ExitError)(nil); !errors.As(err, &found) {
			fmt.Fprintln(os.Stderr, "vet:", err)
		}
		os.Exit(1)
	}
}

// calledByVet reports whether go vet calls this program, about a package or what it is.
func calledByVet() bool {
	last := os.Args[len(os.Args)-1]
	return last == "-V=full" || last == "-flags" || strings.HasSuffix(last, ".cfg")
}

// run has go vet check packages with this program.
func run(dir string, packages []string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"vet", "-vettool=" + self}, packages...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	return cmd.Run()
}

func checks() (all []*analysis.Analyzer) {
	for _, a := range vet.Suite {
		// Go 1.26 does not have it. Here a Scanner reads what another process writes, and an error is the end of that.
		if a != scannererr.Analyzer {
			all = append(all, a)
		}
	}
	for _, a := range slices.Concat(simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers) {
		if !a.Doc.NonDefault {
			all = append(all, named(a.Analyzer))
		}
	}
	return append(all, named(u1000))
}

// named has a check of staticcheck say its name, which its documentation is listed by.
func named(a *analysis.Analyzer) *analysis.Analyzer {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		telling := *pass
		telling.Report = func(d analysis.Diagnostic) {
			d.Message += " (" + a.Name + ")"
			pass.Report(d)
		}
		return run(&telling)
	}
	return a
}
