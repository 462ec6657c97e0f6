// The dependency edges of a JavaScript or TypeScript repository as the TypeScript compiler resolves them.
//
//     node typescript.js FOLDER_OF_TYPESCRIPT REPOSITORY > edges.json
//
// Prints a JSON list of [dependent, dependency]. A file depends on the files that its imports, re-exports, requires
// and dynamic imports name, and on the files that declare the names it uses: through all aliases, and for members
// where the type of the object is known. Of several declarations of a name the first counts. Every file is resolved
// under the nearest tsconfig.json or jsconfig.json; packages of the repository resolve by the name in their
// package.json, as if linked into node_modules.
"use strict";

const path = require("path");
const ts = require(process.argv[2]);

const root = path.resolve(process.argv[3]);
const SOURCE = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"];
const ENTRIES = ["./src/index", "./index", "./lib/index", "./src/main", "."];
const OPTIONS = {
  allowJs: true,
  allowImportingTsExtensions: true,
  jsx: ts.JsxEmit.Preserve,
  maxNodeModuleJsDepth: 0,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ESNext,
  types: [],
};

const files = ts.sys.readDirectory(root, SOURCE, ["**/node_modules/**"]).map((file) => path.resolve(file));
const inside = new Set(files);
const host = ts.createCompilerHost(OPTIONS);
const packages = packagesByName();
const configurations = new Map();
const resolved = new Map();
host.resolveModuleNameLiterals = (literals, containing) =>
  literals.map((literal) => ({ resolvedModule: moduleOf(literal.text, containing) }));

function packagesByName() {
  const found = new Map();
  for (const file of ts.sys.readDirectory(root, [".json"], ["**/node_modules/**"], ["**/package.json"])) {
    const { config } = ts.readConfigFile(file, ts.sys.readFile);
    if (config && config.name && !found.has(config.name)) found.set(config.name, path.dirname(file));
  }
  return found;
}

function configuration(folder) {
  if (configurations.has(folder)) return configurations.get(folder);
  const file = ["tsconfig.json", "jsconfig.json"].map((it) => path.join(folder, it)).find(ts.sys.fileExists);
  const quiet = { ...ts.sys, onUnRecoverableConfigFileDiagnostic() {} };
  const parsed = file && ts.getParsedCommandLineOfConfigFile(file, {}, quiet);
  const found = parsed ? parsed.options : folder === root ? {} : configuration(path.dirname(folder));
  configurations.set(folder, found);
  return found;
}

function moduleOf(name, containing) {
  const folder = path.dirname(path.resolve(containing));
  const key = `${folder}\0${name}`;
  if (!resolved.has(key)) resolved.set(key, find(name, path.resolve(containing), folder));
  return resolved.get(key);
}

function find(name, containing, folder) {
  const { baseUrl, paths, pathsBasePath, rootDirs } = configuration(folder);
  const known = (one, from, options) => {
    const { resolvedModule } = ts.resolveModuleName(one, from, options, host);
    return resolvedModule && inside.has(path.resolve(resolvedModule.resolvedFileName)) ? resolvedModule : undefined;
  };
  const found = known(name, containing, { ...OPTIONS, baseUrl, paths, pathsBasePath, rootDirs });
  if (found || name.startsWith(".")) return found;
  const owner = name.split("/").slice(0, name.startsWith("@") ? 2 : 1).join("/");
  if (!packages.has(owner)) return undefined;
  const rest = name.slice(owner.length + 1);
  const from = path.join(packages.get(owner), "_.ts");
  const tries = rest ? [`./${rest}`, `./src/${rest}`] : ENTRIES;
  return tries.map((one) => known(one, from, OPTIONS)).find(Boolean);
}

function isModuleName(node) {
  const { parent } = node;
  if (ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent)) return true;
  if (ts.isExternalModuleReference(parent)) return true;
  if (ts.isLiteralTypeNode(parent) && ts.isImportTypeNode(parent.parent)) return true;
  if (!ts.isCallExpression(parent) || parent.arguments[0] !== node) return false;
  const { expression } = parent;
  return expression.kind === ts.SyntaxKind.ImportKeyword || expression.getText() === "require";
}

function declaring(checker, node) {
  let symbol = checker.getSymbolAtLocation(node);
  if (ts.isShorthandPropertyAssignment(node.parent) && node.parent.name === node)
    symbol = checker.getShorthandAssignmentValueSymbol(node.parent) || symbol;
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  const declaration = symbol && (symbol.valueDeclaration || (symbol.declarations && symbol.declarations[0]));
  return declaration && declaration.getSourceFile().fileName;
}

const program = ts.createProgram(files, OPTIONS, host);
const checker = program.getTypeChecker();
const relative = (file) => path.relative(root, file).split(path.sep).join("/");
const edges = new Set();
for (const source of program.getSourceFiles()) {
  const dependent = path.resolve(source.fileName);
  if (!inside.has(dependent)) continue;
  const add = (file) => {
    const dependency = file && path.resolve(file);
    if (dependency && dependency !== dependent && inside.has(dependency))
      edges.add(JSON.stringify([relative(dependent), relative(dependency)]));
  };
  const visit = (node) => {
    if (ts.isStringLiteralLike(node) && isModuleName(node)) {
      const found = moduleOf(node.text, source.fileName);
      add(found && found.resolvedFileName);
    } else if (ts.isIdentifier(node)) {
      add(declaring(checker, node));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}
process.stdout.write(`[${[...edges].sort().join(",")}]`);
