package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The pause of a release runs once, and not when it is over. Close finds no pause that begins while it begins: such a one is
// short.
func TestPauses_RunUntilTheyAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng, r, ended := new(Engine), new(lock.Repeated), 0
		pause := func(d time.Duration) {
			eng.pausing(r, d, func() {
				ended++
				eng.resumed(r)
			})
		}
		pause(time.Hour)
		pause(time.Minute) // it has begun before
		eng.resumed(r)
		time.Sleep(2 * time.Hour)
		if ended != 0 || len(eng.paused) != 0 {
			t.Errorf("%d pauses have come to their ends, %d are left", ended, len(eng.paused))
		}
		pause(time.Hour)
		pause(time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		if ended != 1 || len(eng.paused) != 0 {
			t.Errorf("%d pauses have come to their ends, %d are left", ended, len(eng.paused))
		}
		eng.closed = true
		pause(time.Hour)
		time.Sleep(lock.AwaitedPause)
		synctest.Wait()
		if ended != 2 {
			t.Error("a long pause while Close waits")
		}
	})
}

// An event that unlocks the mutex of its entry by itself would drop its effects.
func TestEvents_EndByEnd(t *testing.T) {
	names, err := filepath.Glob("*.go")
	redistest.Must(t, err)
	events := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		redistest.Must(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				begins, ends := eventIn(f)
				if begins != ends {
					t.Errorf("%s: %s begins an event: %v, and ends it by end alone: %v", fset.Position(f.Pos()), f.Name.Name, begins, ends)
				}
				if begins {
					events++
				}
			}
		}
	}
	if events == 0 {
		t.Error("no function begins an event")
	}
}

// eventIn reports whether f begins an event, and whether it ends it and unlocks no entry otherwise.
func eventIn(f *ast.FuncDecl) (begins, ends bool) {
	bare := false
	isEvent := func(x ast.Expr) bool {
		id, ok := x.(*ast.Ident)
		return ok && (id.Name == "ev" || id.Name == "p")
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok {
			begins = begins || f.Sel.Name == "Begin" && isEvent(f.X)
			ends = ends || f.Sel.Name == "end" && len(call.Args) > 1
			if of, ok := f.X.(*ast.SelectorExpr); ok && f.Sel.Name == "Unlock" && of.Sel.Name == "mu" {
				x, ok := of.X.(*ast.Ident)
				bare = bare || !ok || x.Name != "eng"
			}
		}
		return true
	})
	return begins, ends && !(begins && bare)
}
