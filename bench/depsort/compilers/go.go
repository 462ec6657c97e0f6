// Prints tab-separated pairs of paths: a file of a Go module that uses a symbol, and the file that declares it.
//
// Usage: go run go.go FOLDER, where FOLDER holds go.mod. `go list` lists the packages and fetches the required
// modules; go/types checks the module's own packages with bodies and tests, all others by their declarations
// alone. An identifier counts where it is used; its dependency is the file of the declaration that the checker
// found. A package that does not build counts as far as it checks. Files for another system or architecture have
// no edges.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
)

type listed struct {
	ImportPath, Dir, ForTest                     string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	ImportMap                                    map[string]string
	Standard                                     bool
}

type checker struct {
	root    string
	fset    *token.FileSet
	listed  map[string]*listed
	checked map[string]*types.Package
	edges   map[[2]string]bool
}

func main() {
	root, err := filepath.EvalSymlinks(os.Args[1])
	if err == nil {
		err = run(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string) error {
	packages, err := list(root)
	if err != nil {
		return err
	}
	c := &checker{root, token.NewFileSet(), map[string]*listed{}, map[string]*types.Package{"unsafe": types.Unsafe}, map[[2]string]bool{}}
	var own []*listed
	for _, p := range packages {
		if p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") {
			continue // go list's own variants for tests; the checker below makes them itself
		}
		c.listed[p.ImportPath] = p
		if c.relative(p.Dir) != "" {
			own = append(own, p)
		}
	}
	sort.Slice(own, func(i, j int) bool { return own[i].ImportPath < own[j].ImportPath })
	for _, p := range own {
		c.withTests(p)
	}
	pairs := make([]string, 0, len(c.edges))
	for edge := range c.edges {
		pairs = append(pairs, edge[0]+"\t"+edge[1])
	}
	sort.Strings(pairs)
	out := bufio.NewWriter(os.Stdout)
	for _, pair := range pairs {
		fmt.Fprintln(out, pair)
	}
	return out.Flush()
}

func list(root string) ([]*listed, error) {
	command := exec.Command("go", "list", "-e", "-deps", "-test", "-mod=mod",
		"-json=ImportPath,Dir,ForTest,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,ImportMap,Standard", "./...")
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	var packages []*listed
	for decoder := json.NewDecoder(output); ; {
		p := new(listed)
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return packages, command.Wait()
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// relative is the path of a file or folder below the root, empty where it lies elsewhere.
func (c *checker) relative(path string) string {
	relative, err := filepath.Rel(c.root, path)
	if path == "" || err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return ""
	}
	return filepath.ToSlash(relative)
}

// withTests checks a package as its tests see it, then the package of its external tests.
func (c *checker) withTests(p *listed) {
	c.imported(p)
	if len(p.TestGoFiles) > 0 {
		c.check(p, p.ImportPath, append(append([]string{}, p.GoFiles...), p.TestGoFiles...), nil)
	}
	if len(p.XTestGoFiles) > 0 {
		augmented := c.check(p, p.ImportPath, append(append([]string{}, p.GoFiles...), p.TestGoFiles...), nil)
		c.check(p, p.ImportPath+"_test", p.XTestGoFiles, augmented)
	}
}

// imported is the package as others import it, checked once.
func (c *checker) imported(p *listed) *types.Package {
	if found, ok := c.checked[p.ImportPath]; ok {
		return found
	}
	c.checked[p.ImportPath] = nil // an import cycle finds nothing
	c.checked[p.ImportPath] = c.check(p, p.ImportPath, append(append([]string{}, p.GoFiles...), p.CgoFiles...), nil)
	return c.checked[p.ImportPath]
}

func (c *checker) check(p *listed, path string, names []string, underTest *types.Package) *types.Package {
	own := c.relative(p.Dir) != ""
	var files []*ast.File
	for _, name := range names {
		file, _ := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if file != nil {
			files = append(files, file)
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{
		IgnoreFuncBodies: !own,
		FakeImportC:      true,
		Sizes:            types.SizesFor("gc", runtime.GOARCH),
		Error:            func(error) {}, // what checks is taken
		Importer: importer(func(name string) (*types.Package, error) {
			if underTest != nil && name == p.ImportPath {
				return underTest, nil
			}
			return c.find(p, name)
		}),
	}
	found, _ := config.Check(path, c.fset, files, info)
	if own {
		for identifier, object := range info.Uses {
			c.add(identifier.Pos(), object.Pos())
		}
	}
	return found
}

func (c *checker) find(importing *listed, name string) (*types.Package, error) {
	if name == "unsafe" {
		return types.Unsafe, nil
	}
	if mapped, ok := importing.ImportMap[name]; ok {
		name = mapped
	}
	if p, ok := c.listed[name]; ok {
		if found := c.imported(p); found != nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no package %s", name)
}

func (c *checker) add(use, declaration token.Pos) {
	if !use.IsValid() || !declaration.IsValid() {
		return
	}
	from := c.relative(c.fset.Position(use).Filename)
	to := c.relative(c.fset.Position(declaration).Filename)
	if from != "" && to != "" && from != to {
		c.edges[[2]string{from, to}] = true
	}
}

type importer func(string) (*types.Package, error)

func (find importer) Import(path string) (*types.Package, error) { return find(path) }
