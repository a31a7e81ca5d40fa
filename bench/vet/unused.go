package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/unused"
)

// u1000 reports what staticcheck calls U1000 and its analyzer only returns: what no file of a package uses. It reports
// as well what only the package's tests use, but not in a package that is there for its tests, as internal/explore.
var u1000 = &analysis.Analyzer{
	Name:     "U1000",
	Doc:      "report what is unused, or used by tests only",
	Requires: unused.Analyzer.Analyzer.Requires,
	Run: func(pass *analysis.Pass) (any, error) {
		found, err := unusedIn(pass, pass.Files)
		if err != nil {
			return nil, err
		}
		for o := range found {
			pass.Reportf(position(pass.Fset, o.Position), "%s %s is unused", o.Kind, o.Name)
		}
		code := slices.DeleteFunc(slices.Clone(pass.Files), func(f *ast.File) bool { return isTest(pass, f.FileStart) })
		if len(code) == len(pass.Files) || !serves(pass) {
			return nil, nil
		}
		tested, err := unusedIn(pass, code)
		for o := range tested {
			if !found[o] {
				pass.Reportf(position(pass.Fset, o.Position), "%s %s is used by tests only", o.Kind, o.Name)
			}
		}
		return nil, err
	},
}

func isTest(pass *analysis.Pass, pos token.Pos) bool {
	return strings.HasSuffix(pass.Fset.File(pos).Name(), "_test.go")
}

// serves reports whether there may be users of a package beside its tests.
func serves(pass *analysis.Pass) bool {
	scope := pass.Pkg.Scope()
	return pass.Pkg.Name() == "main" || slices.ContainsFunc(scope.Names(), func(name string) bool {
		return token.IsExported(name) && !isTest(pass, scope.Lookup(name).Pos())
	})
}

// unusedIn returns what is unused if a package has these files only.
func unusedIn(pass *analysis.Pass, files []*ast.File) (map[unused.Object]bool, error) {
	part := *pass
	part.Files = files
	result, err := unused.Analyzer.Analyzer.Run(&part)
	if err != nil {
		return nil, err
	}
	found := make(map[unused.Object]bool)
	for _, o := range result.(unused.Result).Unused {
		found[o] = true
	}
	return found, nil
}

// position is the inverse of token.FileSet.Position.
func position(fset *token.FileSet, p token.Position) (pos token.Pos) {
	fset.Iterate(func(f *token.File) bool {
		if f.Name() == p.Filename {
			pos = f.Pos(p.Offset)
		}
		return pos == token.NoPos
	})
	return pos
}
