package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// machine are the files of the state machine: what they know of the world, an event's moment tells them.
var machine = []string{
	"alarm.go", "answers.go", "aside.go", "bid.go", "copies.go", "demand.go", "downgrade.go", "enter.go", "entry.go", "grant.go", "hold.go", "keep.go", "known.go", "kind.go",
	"leave.go", "loss.go", "notice.go", "place.go", "stay.go", "release.go", "repeated.go", "sweep.go", "trouble.go", "try.go",
}

// outside is what asks the world, or changes it.
var outside = []string{
	"time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "time.Sleep", "time.Tick", "time.NewTicker",
	".Chance", ".coarseNow", ".live", ".Live", ".Denied", ".Sharded", ".sessions", ".rely",
	".Closed", ".Silence", ".RoundTrip", ".FirstWithin", ".patienceFor", ".askPatience", ".seen", ".saw", ".closing",
	".Submit", ".Wrote", ".scheduler", ".Warm", ".Subscriber", ".inbox", "time.AfterFunc", ".pausing", ".resumed",
}

func TestMachine_KnowsTheWorldByItsMoment(t *testing.T) {
	for _, name := range machine {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range file.Imports {
				if path, _ := strconv.Unquote(i.Path.Value); path == "math/rand" || path == "math/rand/v2" {
					t.Errorf("imports %s: chance is asked of the moment", path)
				}
			}
			for _, asked := range asks(file) {
				t.Errorf("%s: %s: the moment is asked", fset.Position(asked.Pos()), asked.Sel.Name)
			}
		})
	}
}

// asks returns where file names one of outside.
func asks(file *ast.File) (all []*ast.SelectorExpr) {
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, _ := s.X.(*ast.Ident)
		if of != nil && of.Name == "m" {
			return true
		}
		if slices.Contains(outside, "."+s.Sel.Name) || of != nil && slices.Contains(outside, of.Name+"."+s.Sel.Name) {
			all = append(all, s)
		}
		return true
	})
	return all
}

// A test that finds nothing in the files shows nothing unless it finds each of these.
func TestMachine_TheWorldIsRecognised(t *testing.T) {
	for _, x := range outside {
		if x[0] == '.' {
			x = "e.engine" + x
		}
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() { "+x+"() }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(asks(file)) != 1 {
			t.Errorf("%s is not found", x)
		}
	}
}

// An event that unlocks the mutex of its entry by itself would drop its effects.
func TestMachine_EventsEndByUnlock(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && f.Name.Name != "moment" {
				begins, ends := eventIn(f)
				if begins != ends {
					t.Errorf("%s: %s makes a moment: %v, and ends it by unlock or unlockAll alone: %v", fset.Position(f.Pos()), f.Name.Name, begins, ends)
				}
				if begins {
					events++
				}
			}
		}
	}
	if events == 0 {
		t.Error("no function makes a moment")
	}
}

// eventIn reports whether f makes a moment, and whether it ends it and unlocks no entry otherwise.
func eventIn(f *ast.FuncDecl) (begins, ends bool) {
	bare := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			name, ok := n.Type.(*ast.Ident)
			begins = begins || ok && name.Name == "moment"
		case *ast.CallExpr:
			switch f := n.Fun.(type) {
			case *ast.Ident:
				ends = ends || f.Name == "unlockAll"
			case *ast.SelectorExpr:
				begins = begins || f.Sel.Name == "moment"
				ends = ends || f.Sel.Name == "unlock"
				if of, ok := f.X.(*ast.SelectorExpr); ok && f.Sel.Name == "Unlock" && of.Sel.Name == "mu" {
					x, ok := of.X.(*ast.Ident)
					bare = bare || !ok || x.Name != "eng"
				}
			}
		}
		return true
	})
	return begins, ends && !(begins && bare)
}
