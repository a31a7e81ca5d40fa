package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// An event that unlocks the mutex of its entry by itself would drop its effects.
func TestEvents_EndByUnlock(t *testing.T) {
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
		if n, ok := n.(*ast.CallExpr); ok {
			switch f := n.Fun.(type) {
			case *ast.Ident:
				ends = ends || f.Name == "unlockAll"
			case *ast.SelectorExpr:
				begins = begins || f.Sel.Name == "moment" || f.Sel.Name == "Begin" || f.Sel.Name == "BeginAt"
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
