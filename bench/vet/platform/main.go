// Command platform checks that packages and their tests compile for another platform:
//
//	go -C bench/vet run ./platform "$PWD" windows/386 ./...
//
// It runs the checks of go vet. go vet itself would compile all that they import for that platform first, which a build cache does not have;
// this program type-checks it from source instead.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: platform DIRECTORY OS/ARCHITECTURE PACKAGES")
		os.Exit(2)
	}
	system, processor, _ := strings.Cut(os.Args[2], "/")
	found, err := check(os.Args[1], system, processor, os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "platform:", err)
	}
	if found || err != nil {
		os.Exit(1)
	}
}

// check prints what is wrong, and reports whether anything is.
func check(dir, system, processor string, patterns []string) (found bool, err error) {
	all, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
		Tests: true,
	}, patterns...)
	if err != nil || packages.PrintErrors(all) > 0 {
		return true, err
	}
	graph, err := checker.Analyze(vet.Suite, all, nil)
	if err != nil {
		return true, err
	}
	for _, a := range graph.Roots {
		found = found || a.Err != nil || len(a.Diagnostics) > 0
	}
	return found, graph.PrintText(os.Stderr, -1)
}
