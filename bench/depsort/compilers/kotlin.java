// Prints tab-separated pairs of paths: a Kotlin file that names a symbol, and the file that declares the symbol.
//
// Usage: java -cp KOTLIN_COMPILER kotlin.java FOLDER [CLASSPATH]. The first front end of the Kotlin compiler
// analyzes all files below FOLDER at once; names that need a missing library stay unresolved. A name counts where
// the source spells it, also in imports; operators, `this` and names that the compiler adds (`componentN`,
// `iterator`) do not. An inherited member belongs to the file that declares it.

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import org.jetbrains.kotlin.analyzer.AnalysisResult;
import org.jetbrains.kotlin.cli.common.CLIConfigurationKeys;
import org.jetbrains.kotlin.cli.common.config.ContentRootsKt;
import org.jetbrains.kotlin.cli.common.messages.MessageCollector;
import org.jetbrains.kotlin.cli.jvm.compiler.EnvironmentConfigFiles;
import org.jetbrains.kotlin.cli.jvm.compiler.KotlinCoreEnvironment;
import org.jetbrains.kotlin.cli.jvm.compiler.KotlinToJVMBytecodeCompiler;
import org.jetbrains.kotlin.cli.jvm.config.JvmContentRootsKt;
import org.jetbrains.kotlin.com.intellij.openapi.util.Disposer;
import org.jetbrains.kotlin.com.intellij.psi.PsiElement;
import org.jetbrains.kotlin.com.intellij.psi.PsiFile;
import org.jetbrains.kotlin.com.intellij.psi.util.PsiTreeUtil;
import org.jetbrains.kotlin.config.CommonConfigurationKeys;
import org.jetbrains.kotlin.config.CompilerConfiguration;
import org.jetbrains.kotlin.descriptors.DeclarationDescriptor;
import org.jetbrains.kotlin.descriptors.PackageFragmentDescriptor;
import org.jetbrains.kotlin.descriptors.PackageViewDescriptor;
import org.jetbrains.kotlin.lexer.KtTokens;
import org.jetbrains.kotlin.psi.KtFile;
import org.jetbrains.kotlin.psi.KtSimpleNameExpression;
import org.jetbrains.kotlin.resolve.BindingContext;
import org.jetbrains.kotlin.resolve.DescriptorToSourceUtils;

class DepsortTruth {
    public static void main(String[] arguments) throws IOException {
        Path root = Path.of(arguments[0]).toRealPath();
        CompilerConfiguration configuration = new CompilerConfiguration();
        configuration.put(CLIConfigurationKeys.MESSAGE_COLLECTOR_KEY, MessageCollector.Companion.getNONE());
        configuration.put(CommonConfigurationKeys.MODULE_NAME, "truth");
        ContentRootsKt.addKotlinSourceRoot(configuration, root.toString());
        JvmContentRootsKt.addJavaSourceRoot(configuration, root.toFile());
        JvmContentRootsKt.configureJdkClasspathRoots(configuration);
        List<File> jars = new ArrayList<>();
        for (String jar : (arguments.length > 1 ? arguments[1] : "").split(File.pathSeparator)) {
            jars.add(new File(jar));
        }
        JvmContentRootsKt.addJvmClasspathRoots(configuration, jars);
        KotlinCoreEnvironment environment = KotlinCoreEnvironment.createForProduction(
            Disposer.newDisposable(), configuration, EnvironmentConfigFiles.JVM_CONFIG_FILES);
        AnalysisResult result = KotlinToJVMBytecodeCompiler.INSTANCE.analyze(environment);
        Names names = new Names(root, result.getBindingContext());
        for (KtFile file : environment.getSourceFiles()) {
            names.read(file);
        }
        names.pairs.forEach(System.out::println);
    }

    static final class Names {
        final TreeSet<String> pairs = new TreeSet<>();
        private final Path root;
        private final BindingContext context;

        Names(Path root, BindingContext context) {
            this.root = root;
            this.context = context;
        }

        void read(KtFile file) {
            String path = relative(file);
            for (var name : PsiTreeUtil.collectElementsOfType(file, KtSimpleNameExpression.class)) {
                if (name.getReferencedNameElementType() != KtTokens.IDENTIFIER) {
                    continue;
                }
                DeclarationDescriptor target = context.get(BindingContext.REFERENCE_TARGET, name);
                if (target != null) {
                    add(path, target);
                    continue;
                }
                // The name of an import stands for all of its overloads.
                Collection<? extends DeclarationDescriptor> several =
                    context.get(BindingContext.AMBIGUOUS_REFERENCE_TARGET, name);
                if (several != null) {
                    several.forEach(one -> add(path, one));
                }
            }
        }

        private void add(String path, DeclarationDescriptor target) {
            if (target instanceof PackageViewDescriptor || target instanceof PackageFragmentDescriptor) {
                return;
            }
            for (DeclarationDescriptor declared : DescriptorToSourceUtils.getEffectiveReferencedDescriptors(target)) {
                PsiElement source = DescriptorToSourceUtils.getSourceFromDescriptor(declared);
                PsiFile file = source == null ? null : source.getContainingFile();
                if (file != null && file.getVirtualFile() != null) {
                    String declaredIn = relative(file);
                    if (!declaredIn.startsWith("..") && !declaredIn.equals(path)) {
                        pairs.add(path + "\t" + declaredIn);
                    }
                }
            }
        }

        private String relative(PsiFile file) {
            return root.relativize(Path.of(file.getVirtualFile().getPath())).toString().replace('\\', '/');
        }
    }
}
