package vredis

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// compiled are the scripts that this process has compiled, by SHA-1: what a server forgets, another one
// needs not compile again.
var compiled sync.Map

func compile(sha, text string) (*lua.FunctionProto, error) {
	if p, ok := compiled.Load(sha); ok {
		return p.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return nil, err
	}
	mendStatements(chunk)
	proto, err := lua.Compile(chunk, "user_script")
	if err == nil {
		compiled.Store(sha, proto)
	}
	return proto, err
}

// writesGlobals reports whether a script has an assignment to a global variable.
func writesGlobals(p *lua.FunctionProto) bool {
	for _, code := range p.Code {
		if int(code>>26) == lua.OP_SETGLOBAL {
			return true
		}
	}
	for _, inner := range p.FunctionPrototypes {
		if writesGlobals(inner) {
			return true
		}
	}
	return false
}

// gopher-lua evaluates x = f() and (x or g()) wrongly: f's result is put where x is, and then read as x. It is compiled as
// do local t = f() and (x or g()); x = t end instead. And of a, b = nil, a it does not read a before it writes it.

func mendStatements(all []ast.Stmt) {
	for i, s := range all {
		all[i] = mendStatement(s)
	}
}

func onlyVariables(all []ast.Expr) bool {
	return !slices.ContainsFunc(all, func(e ast.Expr) bool {
		_, variable := e.(*ast.IdentExpr)
		return !variable
	})
}

// byWayOfLocals makes of x, y = a, b the block do local v0, v1 = a, b; x = v0; y = v1 end.
func byWayOfLocals(s *ast.AssignStmt) ast.Stmt {
	local := &ast.LocalAssignStmt{Exprs: s.Rhs}
	block := &ast.DoBlockStmt{Stmts: []ast.Stmt{local}}
	made := []ast.PositionHolder{local, block}
	for i, variable := range s.Lhs {
		value := &ast.IdentExpr{Value: fmt.Sprint("(value ", i, ")")}
		assign := &ast.AssignStmt{Lhs: []ast.Expr{variable}, Rhs: []ast.Expr{value}}
		local.Names, block.Stmts = append(local.Names, value.Value), append(block.Stmts, assign)
		made = append(made, value, assign)
	}
	for _, n := range made {
		n.SetLine(s.Line())
		n.SetLastLine(s.LastLine())
	}
	return block
}

func mendStatement(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.AssignStmt:
		mendExpressions(s.Lhs)
		mendExpressions(s.Rhs)
		if several := len(s.Lhs) > 1; onlyVariables(s.Lhs) && (several || len(s.Rhs) == 1 && hasLogic(s.Rhs[0])) {
			return byWayOfLocals(s)
		}
	case *ast.LocalAssignStmt:
		mendExpressions(s.Exprs)
	case *ast.FuncCallStmt:
		mendExpression(s.Expr)
	case *ast.DoBlockStmt:
		mendStatements(s.Stmts)
	case *ast.WhileStmt:
		mendExpression(s.Condition)
		mendStatements(s.Stmts)
	case *ast.RepeatStmt:
		mendExpression(s.Condition)
		mendStatements(s.Stmts)
	case *ast.IfStmt:
		mendExpression(s.Condition)
		mendStatements(s.Then)
		mendStatements(s.Else)
	case *ast.NumberForStmt:
		mendExpressions([]ast.Expr{s.Init, s.Limit, s.Step})
		mendStatements(s.Stmts)
	case *ast.GenericForStmt:
		mendExpressions(s.Exprs)
		mendStatements(s.Stmts)
	case *ast.FuncDefStmt:
		mendStatements(s.Func.Stmts)
	case *ast.ReturnStmt:
		mendExpressions(s.Exprs)
	}
	return s
}

func mendExpressions(all []ast.Expr) {
	for _, e := range all {
		mendExpression(e)
	}
}

// mendExpression mends the functions in an expression.
func mendExpression(e ast.Expr) {
	if f, ok := e.(*ast.FunctionExpr); ok {
		mendStatements(f.Stmts)
	}
	mendExpressions(operands(e))
	if c, ok := e.(*ast.StringConcatOpExpr); ok {
		c.Lhs, c.Rhs = asText(c.Lhs), asText(c.Rhs)
	}
	if a, ok := e.(*ast.ArithmeticOpExpr); ok && a.Operator == "%" {
		// gopher-lua's remainder is C's fmod; it becomes rest(a, b) + 0.
		a.Operator, a.Lhs, a.Rhs = "+", callOf(restFunction, e, a.Lhs, a.Rhs), &ast.NumberExpr{Value: "0"}
	}
}

// textFunction is what asText calls, restFunction what stands for a % b.
const (
	textFunction = "(text)"
	restFunction = "(rest)"
)

// callOf is the call of a function of the script, in the line of e.
func callOf(function string, e ast.Expr, args ...ast.Expr) ast.Expr {
	name := &ast.IdentExpr{Value: function}
	call := &ast.FuncCallExpr{Func: name, Args: args, AdjustRet: true}
	for _, n := range []ast.PositionHolder{name, call} {
		n.SetLine(e.Line())
		n.SetLastLine(e.LastLine())
	}
	return call
}

// asText makes text of a number that is to be joined to another text: gopher-lua writes numbers of more than 14 digits, and fractions,
// in another form than Lua does.
func asText(e ast.Expr) ast.Expr {
	switch e.(type) {
	case *ast.StringExpr, *ast.StringConcatOpExpr:
		return e
	}
	return callOf(textFunction, e, e)
}

// hasLogic reports whether there is an and or an or in an expression.
func hasLogic(e ast.Expr) bool {
	if _, ok := e.(*ast.LogicalOpExpr); ok {
		return true
	}
	for _, x := range operands(e) {
		if hasLogic(x) {
			return true
		}
	}
	return false
}

func operands(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		return []ast.Expr{e.Object, e.Key}
	case *ast.TableExpr:
		var all []ast.Expr
		for _, f := range e.Fields {
			all = append(all, f.Key, f.Value)
		}
		return all
	case *ast.FuncCallExpr:
		return append([]ast.Expr{e.Func, e.Receiver}, e.Args...)
	case *ast.LogicalOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.RelationalOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.StringConcatOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.ArithmeticOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.UnaryMinusOpExpr:
		return []ast.Expr{e.Expr}
	case *ast.UnaryNotOpExpr:
		return []ast.Expr{e.Expr}
	case *ast.UnaryLenOpExpr:
		return []ast.Expr{e.Expr}
	}
	return nil
}
