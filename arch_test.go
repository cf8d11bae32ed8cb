// Package waybill_test holds what is checked about the repository as a whole:
// who imports whom, how long files get, and what packages keep in variables.
package waybill_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"waybill/internal/planted"
)

// module is the prefix of this repository's import paths.
const module = "waybill/"

// maxLines is the length of a file at which somebody should have split it.
const maxLines = 400

// floors says on which floor a package stands. A package imports packages of
// lower floors only, never of its own. What is not listed fails the test: a
// new package gets its floor here first.
var floors = map[string]int{
	"internal/herald": 0, "internal/signature": 0, "internal/subscription": 0,
	"internal/delivery": 0, "internal/keyring": 0, "internal/columns": 0, "internal/planted": 0,

	"internal/egress": 1, "internal/heralddb": 1, "internal/ledger": 1,
	"internal/config": 1, "internal/doctor": 1, "internal/telemetry": 1, "internal/devstack": 1, "receiver": 1,

	"activities": 2, "workflows": 3,
	"worker": 4, "starter": 4, "api": 4,
	"cmd/waybill": 5,

	// Programs and suites that look at the whole from outside.
	"test": 6,

	// For tests; nothing but tests may import it, see testOnly.
	"internal/devstack/stacktest": 2,
	"internal/sourcetest":         0,
}

// testOnly packages may not be imported by anything that ends in a binary.
var testOnly = map[string]bool{"internal/devstack/stacktest": true, "internal/sourcetest": true}

// source is one parsed file and the package directory it stands in.
type source struct {
	dir, path string
	lines     int
	file      *ast.File
}

// sources parses every Go file below the root that belongs to this module.
func sources(t *testing.T) (found []source) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(name)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found = append(found, source{
			dir: filepath.ToSlash(filepath.Dir(name)), path: name,
			lines: bytes.Count(text, []byte("\n")), file: file,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// enter skips hidden directories, test data, and modules of their own.
func enter(dir string) error {
	name := filepath.Base(dir)
	if dir != "." && (name[0] == '.' || name == "testdata") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && dir != "." {
		return filepath.SkipDir
	}
	return nil
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// isTooling says whether a file that is no test serves tests only.
func (s source) isTooling() bool { return testOnly[s.dir] || strings.HasPrefix(s.dir+"/", "test/") }

func (s source) imports(t *testing.T) (paths []string) {
	t.Helper()
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

func TestImportsGoDownwards(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		from, known := floorOf(s.dir)
		if !known {
			t.Errorf("%s: package %s has no floor; give it one in arch_test.go", s.path, s.dir)
			continue
		}
		for _, imported := range s.imports(t) {
			checkImport(t, s, from, imported)
		}
	}
}

// floorOf is the floor of a package: its own, or that of the nearest listed
// directory above, because a package's parts live on its floor.
func floorOf(dir string) (floor int, known bool) {
	for d := dir; d != "." && d != "/"; d = path.Dir(d) {
		if floor, known := floors[d]; known {
			return floor, true
		}
	}
	return 0, false
}

// sameHouse says whether one package is a part of the other, which may import
// each other whatever their floor (the compiler refuses cycles).
func sameHouse(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

func checkImport(t *testing.T, s source, from int, imported string) {
	t.Helper()
	own, ours := strings.CutPrefix(imported, module)
	if !ours {
		if from == 0 && strings.Contains(strings.Split(imported, "/")[0], ".") && !allowedOnGround(s.dir, imported) {
			t.Errorf("%s: floor 0 is standard library only, this imports %s", s.path, imported)
		}
		return
	}
	if testOnly[own] && !s.isTooling() {
		t.Errorf("%s: %s is for tests", s.path, own)
	}
	if to, known := floorOf(own); !sameHouse(s.dir, own) && (!known || to >= from) {
		t.Errorf("%s: floor %d imports %s on floor %d; imports go to lower floors only", s.path, from, own, to)
	}
}

// allowedOnGround are the exceptions: signature encodes structured fields with a
// library rather than once more by hand, and what takes how much room is tables and
// rules of Unicode's.
func allowedOnGround(dir, imported string) bool {
	switch dir {
	case "internal/signature":
		return imported == "github.com/dunglas/httpsfv"
	case "internal/columns":
		return imported == "github.com/rivo/uniseg"
	}
	return false
}

func TestWorkflowsTouchNothing(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || s.dir != "workflows" {
			continue
		}
		for _, imported := range s.imports(t) {
			switch imported {
			case "database/sql", "net", "net/http", "os", "math/rand", "math/rand/v2", "crypto/rand":
				t.Errorf("%s: a workflow decides and does nothing else, this imports %s", s.path, imported)
			}
		}
	}
}

// plantedAt says in which files, and at how many places in each, a planted bug
// is asked for: where the rule lives that it breaks, and nowhere else.
var plantedAt = map[string]int{
	"activities/send.go": 4, "activities/claims.go": 1, "internal/heralddb/attempt.go": 2,
	"internal/egress/client.go": 1, "worker/admission.go": 1, "worker/ownership.go": 1,
}

func TestBugsArePlantedWhereTheirRulesLive(t *testing.T) {
	found := map[string]int{}
	for _, s := range sources(t) {
		if s.isTest() || s.isTooling() || s.dir == "internal/planted" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if use, ok := n.(*ast.SelectorExpr); ok && use.Sel.Name == "Is" && isName(use.X, "planted") {
				found[filepath.ToSlash(s.path)]++
			}
			return true
		})
	}
	if !maps.Equal(found, plantedAt) {
		t.Errorf("bugs are planted at %v, want %v", found, plantedAt)
	}
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// No makefile, image, script or constraint of another package plants a bug: its
// tag is written in internal/planted only, and tests ask that package for it.
func TestNothingElseNamesAPlantedBugsTag(t *testing.T) {
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == ".waybill" || name == "bin" || name == "internal/planted"):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(name)
		for _, bug := range planted.All() {
			if bytes.Contains(text, []byte(bug.Tag())) {
				t.Errorf("%s names the tag %s", name, bug.Tag())
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesStayReadable(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > maxLines && !ast.IsGenerated(s.file) {
			t.Errorf("%s has %d lines, more than %d: split it", s.path, s.lines, maxLines)
		}
	}
}

// A package's variables are errors and tables that are written once, where
// they are declared. Anything else is state that two tests or two workers
// would share.
func TestPackageVariablesAreErrorsAndTables(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || s.isTooling() {
			continue
		}
		for _, decl := range s.file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				checkVariable(t, s, spec.(*ast.ValueSpec))
			}
		}
	}
}

func checkVariable(t *testing.T, s source, v *ast.ValueSpec) {
	t.Helper()
	embedded := v.Values == nil && strings.Contains(imported(s.file), `"embed"`)
	for i, name := range v.Names {
		if name.Name == "_" || embedded {
			continue
		}
		if i >= len(v.Values) {
			t.Errorf("%s: package variable %s has no value: it is state", s.path, name.Name)
			continue
		}
		if !isTable(v.Values[i]) {
			t.Errorf("%s: package variable %s is neither an error nor a table", s.path, name.Name)
		}
	}
}

func imported(f *ast.File) string {
	var all []string
	for _, spec := range f.Imports {
		all = append(all, spec.Path.Value)
	}
	return strings.Join(all, " ")
}

// isTable accepts a composite literal or the result of a call that made one:
// errors.New, regexp.MustCompile, netip.MustParsePrefix, a table's builder.
func isTable(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit, *ast.CallExpr:
		return true
	case *ast.UnaryExpr:
		_, literal := e.X.(*ast.CompositeLit)
		return literal
	}
	return false
}
