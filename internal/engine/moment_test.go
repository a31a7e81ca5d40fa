package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// machine are the files of the state machine: what they know of the world, an event's moment tells them.
var machine = []string{
	"alarm.go", "answers.go", "aside.go", "bid.go", "copies.go", "demand.go", "downgrade.go", "enter.go", "entry.go", "grant.go", "hold.go", "keep.go", "known.go", "kind.go",
	"leave.go", "loss.go", "notice.go", "place.go", "stay.go", "release.go", "repeated.go", "sweep.go", "trouble.go", "try.go",
}

// outside are functions and methods that ask the world.
var outside = []string{
	"time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "time.Sleep", "time.Tick", "time.NewTicker",
	".Chance", ".coarseNow", ".live", ".Denied", ".sessions",
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
