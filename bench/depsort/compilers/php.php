<?php
// Prints tab-separated pairs of paths: a PHP file that names a symbol, and the file that declares the symbol.
//
// Usage: php php.php FOLDER. The engine's own parser (the extension `ast`) reads every file below FOLDER. Names
// are completed by namespace and `use`, as the engine does when it compiles. A member counts where its class is
// certain: named, `self`, `static`, `parent` or `$this`; it belongs to the file that declares it, also in
// ancestors and traits. An include of a path below `__DIR__` counts. Names that no file or several files declare
// do not, and the types of other objects are not inferred.

const VERSION = 85; // of the syntax tree

/** What all files declare, in lower case: classes with parents and members, functions and constants. */
final class Declared
{
    /** @var array<string, array<string, list<string>>> kind => name => files */
    public array $files = ['class' => [], 'function' => [], 'constant' => []];
    /** @var array<string, string> class => the class it extends */
    public array $extended = [];
    /** @var array<string, list<string>> class => traits, the class it extends, interfaces */
    public array $parents = [];
    /** @var array<string, array<string, true>> class => `method()`, `constant` and `$property` */
    public array $members = [];

    public function file(string $kind, string $name): ?string
    {
        $files = array_unique($this->files[$kind][folded($kind, $name)] ?? []);
        return count($files) === 1 ? reset($files) : null;
    }

    /** The file of the class that declares a member, as `$class` sees it. */
    public function member(string $class, string $member): ?string
    {
        for ($pending = [strtolower($class)], $seen = []; $pending; ) {
            $name = array_shift($pending);
            if (isset($seen[$name])) {
                continue;
            }
            $seen[$name] = true;
            if (isset($this->members[$name][$member])) {
                return $this->file('class', $name);
            }
            $pending = [...$pending, ...($this->parents[$name] ?? [])];
        }
        return null;
    }
}

/** Constants heed the case of their last part; all other names do not. */
function folded(string $kind, string $name): string
{
    $end = strrpos($name, '\\');
    return $kind !== 'constant' || $end === false
        ? ($kind === 'constant' ? $name : strtolower($name))
        : strtolower(substr($name, 0, $end)) . substr($name, $end);
}

/** One file, walked twice: once for what it declares, once for what it names. */
final class Reader
{
    private string $namespace = '';
    /** @var array<string, array<string, string>> kind => alias => name */
    private array $uses = [];
    private ?string $class = null;
    private bool $naming = false;
    /** @var array<string, true> */
    public array $found = [];

    public function __construct(private string $path, private string $folder, private Declared $declared)
    {
    }

    public function read(ast\Node $tree, bool $naming): void
    {
        [$this->namespace, $this->class, $this->naming] = ['', null, $naming];
        $this->uses = ['class' => [], 'function' => [], 'constant' => []];
        $this->walk($tree);
    }

    private function walk(mixed $node): void
    {
        if (!$node instanceof ast\Node) {
            return;
        }
        switch ($node->kind) {
            case ast\AST_NAMESPACE:
                $this->namespace = $node->children['name'] ?? '';
                $this->uses = ['class' => [], 'function' => [], 'constant' => []];
                break;
            case ast\AST_USE:
                $this->uses($node, '', $node->flags);
                return;
            case ast\AST_GROUP_USE:
                $this->uses($node->children['uses'], $node->children['prefix'] . '\\', $node->flags);
                return;
            case ast\AST_CLASS:
                $this->inClass($node);
                return;
            case ast\AST_NAME:
                $this->name('class', $node);
                return;
        }
        $this->naming ? $this->named($node) : $this->declares($node);
        foreach ($node->children as $child) {
            $this->walk($child);
        }
    }

    private function uses(ast\Node $list, string $prefix, int $flags): void
    {
        foreach ($list->children as $one) {
            $kind = [ast\flags\USE_FUNCTION => 'function', ast\flags\USE_CONST => 'constant'];
            $kind = $kind[$one->flags ?: $flags] ?? 'class';
            $name = $prefix . $one->children['name'];
            $alias = $one->children['alias'] ?? substr((string) strrchr('\\' . $name, '\\'), 1);
            $this->uses[$kind][folded($kind, $alias)] = $name;
            if ($this->naming) {
                $this->depend($this->declared->file($kind, $name));
            }
        }
    }

    private function inClass(ast\Node $node): void
    {
        $outer = $this->class;
        $name = $node->children['name'] ?? 'class@' . $this->path . $node->lineno;
        $this->class = strtolower($this->inNamespace($name));
        if (!$this->naming) {
            $this->declared->files['class'][$this->class][] = $this->path;
            $extends = $node->children['extends'];
            if ($extends !== null) {
                $this->declared->extended[$this->class] = strtolower($this->full('class', $extends)[0]);
            }
            foreach (array_filter([$extends, ...($node->children['implements']->children ?? [])]) as $parent) {
                $this->declared->parents[$this->class][] = strtolower($this->full('class', $parent)[0]);
            }
        }
        foreach ($node->children as $child) {
            $this->walk($child);
        }
        $this->class = $outer;
    }

    private function declares(ast\Node $node): void
    {
        $parts = $node->children;
        switch ($node->kind) {
            case ast\AST_FUNC_DECL:
                $this->declared->files['function'][strtolower($this->inNamespace($parts['name']))][] = $this->path;
                break;
            case ast\AST_CONST_DECL:
                foreach ($parts as $one) {
                    $name = folded('constant', $this->inNamespace($one->children['name']));
                    $this->declared->files['constant'][$name][] = $this->path;
                }
                break;
            case ast\AST_METHOD:
                $this->declared->members[$this->class][strtolower($parts['name']) . '()'] = true;
                break;
            case ast\AST_CLASS_CONST_DECL:
                foreach ($parts as $one) {
                    $this->declared->members[$this->class][$one->children['name']] = true;
                }
                break;
            case ast\AST_CLASS_CONST_GROUP:
                foreach ($parts['const']->children as $one) {
                    $this->declared->members[$this->class][$one->children['name']] = true;
                }
                break;
            case ast\AST_ENUM_CASE:
                $this->declared->members[$this->class][$parts['name']] = true;
                break;
            case ast\AST_PROP_DECL:
                foreach ($parts as $one) {
                    $this->declared->members[$this->class]['$' . $one->children['name']] = true;
                }
                break;
            case ast\AST_PARAM:
                if ($node->flags & (ast\flags\PARAM_MODIFIER_PUBLIC | ast\flags\PARAM_MODIFIER_PROTECTED
                    | ast\flags\PARAM_MODIFIER_PRIVATE)) {
                    $this->declared->members[$this->class]['$' . $parts['name']] = true;
                }
                break;
            case ast\AST_USE_TRAIT:
                foreach ($parts['traits']->children as $trait) {
                    $this->declared->parents[$this->class] ??= [];
                    $name = strtolower($this->full('class', $trait)[0]);
                    array_unshift($this->declared->parents[$this->class], $name);
                }
                break;
        }
    }

    private function named(ast\Node $node): void
    {
        $parts = $node->children;
        switch ($node->kind) {
            case ast\AST_CALL:
                if ($parts['expr'] instanceof ast\Node && $parts['expr']->kind === ast\AST_NAME) {
                    $this->name('function', $parts['expr']);
                    $node->children['expr'] = null; // it is no class
                }
                break;
            case ast\AST_CONST:
                $this->name('constant', $parts['name']);
                $node->children['name'] = null;
                break;
            case ast\AST_STATIC_CALL:
                $this->member($parts['class'], $parts['method'], '%s()', true);
                break;
            case ast\AST_CLASS_CONST:
                $this->member($parts['class'], $parts['const'], '%s', false);
                break;
            case ast\AST_STATIC_PROP:
                $this->member($parts['class'], $parts['prop'], '$%s', false);
                break;
            case ast\AST_METHOD_CALL:
            case ast\AST_NULLSAFE_METHOD_CALL:
                $this->own($parts['expr'], $parts['method'], '%s()', true);
                break;
            case ast\AST_PROP:
            case ast\AST_NULLSAFE_PROP:
                $this->own($parts['expr'], $parts['prop'], '$%s', false);
                break;
            case ast\AST_INCLUDE_OR_EVAL:
                $written = $this->written($parts['expr']);
                if ($written !== null && ($path = realpath($written)) !== false) {
                    $this->depend(substr($path, strlen($this->folder) + 1), str_starts_with($path, $this->folder));
                }
                break;
        }
    }

    private function name(string $kind, ast\Node $node): void
    {
        if (!$this->naming) {
            return;
        }
        foreach ($this->full($kind, $node) as $name) {
            if (isset($this->declared->files[$kind][folded($kind, $name)])) {
                $this->depend($this->declared->file($kind, $name));
                return;
            }
        }
    }

    /** The names a written one may stand for; a function or constant is looked for outside the namespace, too. */
    private function full(string $kind, ast\Node $node): array
    {
        $name = $node->children['name'];
        if ($node->flags === ast\flags\NAME_FQ) {
            return [$name];
        }
        if ($node->flags === ast\flags\NAME_RELATIVE) {
            return [$this->inNamespace($name)];
        }
        if ($kind === 'class' && in_array(strtolower($name), ['self', 'static'], true)) {
            return [(string) $this->class];
        }
        if ($kind === 'class' && strtolower($name) === 'parent') {
            return [$this->declared->extended[$this->class] ?? ''];
        }
        [$first, $rest] = [...explode('\\', $name, 2), null];
        $aliases = $rest === null ? $this->uses[$kind] : $this->uses['class'];
        $alias = $aliases[$rest === null ? folded($kind, $first) : strtolower($first)] ?? null;
        if ($alias !== null) {
            return [$rest === null ? $alias : "$alias\\$rest"];
        }
        return $kind === 'class' || $rest !== null ? [$this->inNamespace($name)] : [$this->inNamespace($name), $name];
    }

    private function inNamespace(string $name): string
    {
        return $this->namespace === '' ? $name : $this->namespace . '\\' . $name;
    }

    private function member(mixed $class, mixed $name, string $form, bool $anyCase): void
    {
        if ($class instanceof ast\Node && $class->kind === ast\AST_NAME && is_string($name)) {
            $name = sprintf($form, $anyCase ? strtolower($name) : $name);
            $this->depend($this->declared->member($this->full('class', $class)[0], $name));
        }
    }

    private function own(mixed $object, mixed $name, string $form, bool $anyCase): void
    {
        $this_ = $object instanceof ast\Node && $object->kind === ast\AST_VAR && $object->children['name'] === 'this';
        if ($this_ && $this->class !== null && is_string($name)) {
            $name = sprintf($form, $anyCase ? strtolower($name) : $name);
            $this->depend($this->declared->member($this->class, $name));
        }
    }

    /** A path that is written out. */
    private function written(mixed $node): ?string
    {
        if (is_string($node)) {
            return $node;
        }
        if ($node instanceof ast\Node && $node->kind === ast\AST_MAGIC_CONST && $node->flags === ast\flags\MAGIC_DIR) {
            return dirname($this->folder . '/' . $this->path);
        }
        if ($node instanceof ast\Node && $node->kind === ast\AST_BINARY_OP) {
            $parts = [$this->written($node->children['left']), $this->written($node->children['right'])];
            return in_array(null, $parts, true) ? null : implode('', $parts);
        }
        return null;
    }

    private function depend(?string $other, bool $inside = true): void
    {
        if ($inside && $other !== null && $other !== $this->path) {
            $this->found[$this->path . "\t" . $other] = true;
        }
    }
}

$folder = realpath($argv[1]);
$declared = new Declared();
[$trees, $readers, $pairs] = [[], [], []];
foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator($folder, FilesystemIterator::SKIP_DOTS)) as $file) {
    if ($file->isFile() && $file->getExtension() === 'php') {
        $path = substr($file->getPathname(), strlen($folder) + 1);
        try {
            $trees[$path] = ast\parse_code(file_get_contents($file->getPathname()), VERSION);
        } catch (CompileError) {
            continue; // a fixture that shows an error has no edges
        }
        $readers[$path] = new Reader($path, $folder, $declared);
    }
}
ksort($trees);
foreach ([false, true] as $naming) {
    foreach ($trees as $path => $tree) {
        $readers[$path]->read($tree, $naming);
    }
}
foreach ($readers as $reader) {
    $pairs += $reader->found;
}
ksort($pairs);
foreach ($pairs as $pair => $_) {
    echo $pair, "\n";
}
