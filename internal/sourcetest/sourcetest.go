// Package sourcetest reads closed sets from their source, so that a table over
// one is known to be total. Only tests may import it.
package sourcetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// Constants returns the string constants that a file declares of a type, in
// their order. None at all fails the test: the type has moved.
func Constants(t testing.TB, file, typeName string) (values []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typeName)
	}
	return values
}
