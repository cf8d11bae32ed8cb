package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// dockerfile reads deploy/Dockerfile as a builder does.
func dockerfile(t *testing.T) ([]instructions.Stage, []instructions.ArgCommand) {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(read(t, "deploy/Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range parsed.Warnings {
		t.Error(warning.Short)
	}
	stages, args, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{
		Warn: func(rule, _, _, message string, _ []parser.Range) { t.Errorf("%s: %s", rule, message) },
	}))
	if err != nil {
		t.Fatal(err)
	}
	return stages, args
}

// image is what a stage that people run says about itself.
type image struct {
	user, entrypoint string
	command, check   []string
	copied           []string // targets
}

// stage is one of the Dockerfile's, nil if there is none of that name.
func stage(t *testing.T, name string) *image {
	t.Helper()
	stages, _ := dockerfile(t)
	for _, s := range stages {
		if s.Name == name {
			return describe(t, s)
		}
	}
	return nil
}

func describe(t *testing.T, s instructions.Stage) *image {
	t.Helper()
	found := &image{}
	for _, command := range s.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			found.user = c.User
		case *instructions.EntrypointCommand:
			exec(t, s, c.PrependShell)
			found.entrypoint = c.CmdLine[0]
		case *instructions.CmdCommand:
			exec(t, s, c.PrependShell)
			found.command = c.CmdLine
		case *instructions.HealthCheckCommand:
			found.check = c.Health.Test
		case *instructions.CopyCommand:
			found.copied = append(found.copied, c.DestPath)
		}
	}
	return found
}

// exec refuses what needs a shell: there is none in the image.
func exec(t *testing.T, s instructions.Stage, shell bool) {
	t.Helper()
	if shell {
		t.Errorf("%s: needs a shell", s.Name)
	}
}

func TestTheImagesRunAsNobodyAndWithoutAShell(t *testing.T) {
	for _, name := range []string{"waybill", "demo"} {
		s := stage(t, name)
		if s == nil {
			t.Fatalf("no stage %s", name)
		}
		if !nobody(s.user) {
			t.Errorf("%s: user %q", name, s.user)
		}
		if s.entrypoint != "/"+name || !slices.Contains(s.copied, s.entrypoint) {
			t.Errorf("%s: starts %q, holds %v", name, s.entrypoint, s.copied)
		}
	}
}

func TestTheImageIsWaybill(t *testing.T) {
	stages, _ := dockerfile(t)
	if last := stages[len(stages)-1].Name; last != "waybill" {
		t.Errorf("a build without --target makes %q", last)
	}
	s := stage(t, "waybill")
	checkCommand(t, "CMD", s.command)
	if len(s.check) != 3 || s.check[0] != "CMD" || s.check[1] != s.entrypoint {
		t.Fatalf("HEALTHCHECK %v", s.check)
	}
	checkCommand(t, "HEALTHCHECK", s.check[2:])
	// Calls to https receivers need roots; Go looks here on Linux.
	if !slices.Contains(s.copied, "/etc/ssl/certs/ca-certificates.crt") {
		t.Errorf("no roots among %v", s.copied)
	}
}

func TestTheBuildIsStaticStampedAndOfPackagesThatExist(t *testing.T) {
	stages, _ := dockerfile(t)
	var build []string
	for _, command := range stages[0].Commands {
		if run, ok := command.(*instructions.RunCommand); ok && strings.Contains(run.CmdLine[0], "go build") {
			build = strings.Fields(run.CmdLine[0])
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "-buildvcs=${BUILDVCS}"} {
		if !slices.Contains(build, want) {
			t.Errorf("the build says no %s: %v", want, build)
		}
	}
	packages := 0
	for _, word := range build {
		if !strings.HasPrefix(word, "./") {
			continue
		}
		packages++
		if found, _ := filepath.Glob(filepath.Join(root, word, "*.go")); found == nil {
			t.Errorf("there is no package %s", word)
		}
	}
	if packages == 0 {
		t.Error("no package is built")
	}
}

// The base images are arguments with defaults that name no registry, and the
// compiler is of the line that go.mod asks for.
func TestTheBaseImagesArePinned(t *testing.T) {
	stages, args := dockerfile(t)
	defaults := map[string]string{}
	for _, arg := range args {
		for _, pair := range arg.Args {
			defaults[pair.Key] = *pair.Value
		}
	}
	for _, s := range stages {
		base := strings.Trim(s.BaseName, "${}")
		image, known := defaults[base]
		if !known {
			t.Errorf("stage %s: base %q is no argument with a default", s.Name, s.BaseName)
		}
		if image != "scratch" {
			checkImage(t, s.Name, image)
		}
	}
	for line := range strings.Lines(read(t, "go.mod")) {
		if asked, ok := strings.CutPrefix(strings.TrimSpace(line), "go "); ok {
			line := asked[:strings.LastIndex(asked, ".")]
			if !strings.HasPrefix(defaults["GO_IMAGE"], "golang:"+line+".") {
				t.Errorf("go.mod asks for %s, the build has %s", asked, defaults["GO_IMAGE"])
			}
		}
	}
}

// Leaving out a tracked file would stamp the version as locally changed, so
// only what git ignores is left out. Git's "/x/" is Docker's "x/", its "*.y"
// in every directory is "**/*.y".
func TestTheContextLeavesOutWhatGitIgnoresAndNothingElse(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "deploy/Dockerfile.dockerignore")); err == nil {
		t.Error("a second list takes precedence over .dockerignore")
	}
	var git []string
	for _, pattern := range patterns(read(t, ".gitignore")) {
		if anchored, ok := strings.CutPrefix(pattern, "/"); ok {
			git = append(git, anchored)
		} else {
			git = append(git, "**/"+pattern)
		}
	}
	if docker := patterns(read(t, ".dockerignore")); !slices.Equal(docker, git) {
		t.Errorf(".dockerignore %v, from .gitignore %v", docker, git)
	}
}

func patterns(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}
