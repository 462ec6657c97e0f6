// Prints tab-separated pairs of paths: a Java file that names a symbol, and the file that declares the symbol.
//
// Usage: java java.java FOLDER [CLASSPATH]. javac attributes all sources below FOLDER at once, without annotation
// processors; names that need a missing library stay unresolved. A name counts where the source spells it, also in
// imports; names that javac infers (the type of `var` or of a lambda's parameter) do not. The dependency is the
// file that declares the class, or the class of the member.

import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.IdentifierTree;
import com.sun.source.tree.MemberReferenceTree;
import com.sun.source.tree.MemberSelectTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePath;
import com.sun.source.util.TreePathScanner;
import com.sun.source.util.Trees;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.PackageElement;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

class DepsortTruth {
    public static void main(String[] arguments) throws IOException {
        Path root = Path.of(arguments[0]).toRealPath();
        List<Path> paths;
        try (Stream<Path> found = Files.walk(root)) {
            paths = found.filter(path -> path.toString().endsWith(".java") && Files.isRegularFile(path))
                .filter(path -> !path.endsWith("module-info.java"))
                .sorted()
                .collect(Collectors.toList());
        }
        List<String> options = new ArrayList<>(List.of("-proc:none", "-XDshould-stop.ifError=FLOW", "-nowarn"));
        options.addAll(List.of("-classpath", arguments.length > 1 ? arguments[1] : ""));
        var compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager files = compiler.getStandardFileManager(problem -> {}, null, StandardCharsets.UTF_8);
        JavacTask task = (JavacTask) compiler.getTask(
            null, files, problem -> {}, options, null, files.getJavaFileObjectsFromPaths(paths));
        List<CompilationUnitTree> units = new ArrayList<>();
        task.parse().forEach(units::add);
        task.analyze();
        Names names = new Names(root, Trees.instance(task));
        for (CompilationUnitTree unit : units) {
            names.read(unit);
        }
        names.pairs.forEach(System.out::println);
    }

    static final class Names extends TreePathScanner<Void, Void> {
        final TreeSet<String> pairs = new TreeSet<>();
        private final Path root;
        private final Trees trees;
        private final Map<Element, String> declaredIn = new HashMap<>();
        private String path;
        private CharSequence text;

        Names(Path root, Trees trees) {
            this.root = root;
            this.trees = trees;
        }

        void read(CompilationUnitTree unit) throws IOException {
            path = relative(unit);
            text = unit.getSourceFile().getCharContent(true);
            scan(unit, null);
        }

        @Override
        public Void visitIdentifier(IdentifierTree tree, Void nothing) {
            long start = trees.getSourcePositions().getStartPosition(getCurrentPath().getCompilationUnit(), tree);
            if (writtenAt(start, tree.getName())) {
                add(trees.getElement(getCurrentPath()));
            }
            return super.visitIdentifier(tree, nothing);
        }

        @Override
        public Void visitMemberSelect(MemberSelectTree tree, Void nothing) {
            long end = trees.getSourcePositions().getEndPosition(getCurrentPath().getCompilationUnit(), tree);
            if (writtenAt(end - tree.getIdentifier().length(), tree.getIdentifier())) {
                add(trees.getElement(getCurrentPath()));
            }
            return super.visitMemberSelect(tree, nothing);
        }

        @Override
        public Void visitMemberReference(MemberReferenceTree tree, Void nothing) {
            add(trees.getElement(getCurrentPath()));
            return super.visitMemberReference(tree, nothing);
        }

        private boolean writtenAt(long start, CharSequence name) {
            return start >= 0
                && start + name.length() <= text.length()
                && name.toString().contentEquals(text.subSequence((int) start, (int) start + name.length()));
        }

        private void add(Element element) {
            if (element == null || element.getKind() == ElementKind.PACKAGE) {
                return;
            }
            Element outermost = element;
            while (outermost.getEnclosingElement() != null
                && !(outermost.getEnclosingElement() instanceof PackageElement)) {
                outermost = outermost.getEnclosingElement();
            }
            String declared = declaredIn.computeIfAbsent(outermost, this::pathOf);
            if (!declared.isEmpty() && !declared.equals(path)) {
                pairs.add(path + "\t" + declared);
            }
        }

        private String pathOf(Element element) {
            TreePath found = element instanceof PackageElement ? null : trees.getPath(element);
            return found == null ? "" : relative(found.getCompilationUnit());
        }

        private String relative(CompilationUnitTree unit) {
            return root.relativize(Path.of(unit.getSourceFile().toUri())).toString().replace('\\', '/');
        }
    }
}
