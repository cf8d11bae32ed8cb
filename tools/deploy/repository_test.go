// Package deploy checks what the repository offers for running Waybill
// elsewhere: docker-compose.yml, deploy/Dockerfile and deploy/kubernetes. No
// container is started: the files are read as their own programs read them, and
// what they say is compared with the code and the documents.
//
// It is a module of its own, so that the compose, Kubernetes and Dockerfile
// libraries stay out of the product's.
package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// root is the repository.
const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// grace is the grace period that docs/operations.md demands.
func grace(t *testing.T) time.Duration {
	t.Helper()
	found := regexp.MustCompile(`give it (\d+ s)`).FindStringSubmatch(read(t, "docs/operations.md"))
	if found == nil {
		t.Fatal("docs/operations.md no longer says how long a stop may take")
	}
	d, err := time.ParseDuration(strings.ReplaceAll(found[1], " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// checkCommand demands that waybill has a command: its first argument.
func checkCommand(t *testing.T, where string, args []string) {
	t.Helper()
	if len(args) == 0 {
		t.Errorf("%s: no command", where)
		return
	}
	files, err := filepath.Glob(filepath.Join(root, "cmd/waybill/*.go"))
	if err != nil || files == nil {
		t.Fatalf("no sources of waybill: %v", err)
	}
	name := regexp.MustCompile(`Use:\s+"` + regexp.QuoteMeta(args[0]) + `[" ]`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name.Match(text) {
			return
		}
	}
	t.Errorf("%s: waybill has no command %q", where, args[0])
}

// version is a tag that stays what it is: major and minor at least.
var version = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+([-.][a-z0-9.]+)*$`)

// checkImage demands a name as it is commonly written, with a version.
func checkImage(t *testing.T, where, image string) {
	t.Helper()
	if err := pinned(image); err != nil {
		t.Errorf("%s: image %q %v", where, image, err)
	}
}

func pinned(image string) error {
	name, tag, _ := strings.Cut(image, ":")
	first, _, several := strings.Cut(name, "/")
	switch {
	case several && strings.Contains(first, "."):
		return fmt.Errorf("names a registry's host; whoever runs this has a registry of their own")
	case !version.MatchString(tag):
		return fmt.Errorf("has no version as its tag")
	}
	return nil
}

func TestPinnedTellsVersionsFromMovingTags(t *testing.T) {
	for image, want := range map[string]bool{
		"mysql:8.4.6": true, "temporalio/ui:2.42.1": true, "golang:1.26.8-bookworm": true,
		"mysql": false, "mysql:latest": false, "mysql:8": false, "registry.example/mysql:8.4.6": false,
	} {
		if got := pinned(image) == nil; got != want {
			t.Errorf("%s: pinned %v", image, got)
		}
	}
}

// environment is a lookup as config.Load wants it.
func environment(values map[string]string) (getenv func(string) string, environ []string) {
	for name, value := range values {
		environ = append(environ, name+"="+value)
	}
	return func(name string) string { return values[name] }, environ
}
