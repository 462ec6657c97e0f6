// Prints tab-separated pairs of paths: a C# file that names a symbol, and the file that declares the symbol.
//
// Usage: dotnet csharp.dll FOLDER. Roslyn compiles all sources below FOLDER as one assembly, without the symbols
// that a build defines; names that need other packages stay unresolved. A name counts where the source spells it;
// `var` does not. A member belongs to the file that declares it, a partial type to the part with the shortest
// path.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;

static class DepsortTruth
{
    static void Main(string[] arguments)
    {
        var root = Path.GetFullPath(arguments[0]);
        var options = new CSharpParseOptions(LanguageVersion.Preview, DocumentationMode.None);
        var trees = Directory.EnumerateFiles(root, "*.cs", SearchOption.AllDirectories)
            .OrderBy(path => path, StringComparer.Ordinal)
            .Select(path => CSharpSyntaxTree.ParseText(File.ReadAllText(path), options, Path.GetRelativePath(root, path)))
            .ToList();
        var references = Directory.EnumerateFiles(Path.GetDirectoryName(typeof(object).Assembly.Location), "*.dll")
            .Where(IsManaged)
            .Select(path => MetadataReference.CreateFromFile(path));
        var compilation = CSharpCompilation.Create(
            "truth", trees, references,
            new CSharpCompilationOptions(OutputKind.DynamicallyLinkedLibrary, allowUnsafe: true));
        var pairs = new SortedSet<string>(StringComparer.Ordinal);
        foreach (var tree in trees)
        {
            var model = compilation.GetSemanticModel(tree);
            foreach (var name in tree.GetRoot().DescendantNodes().OfType<SimpleNameSyntax>())
            {
                if (name.IsVar) continue;
                var found = model.GetSymbolInfo(name);
                foreach (var symbol in found.Symbol != null ? new[] { found.Symbol } : found.CandidateSymbols.ToArray())
                {
                    var declared = DeclaringFile(symbol);
                    if (declared != null && declared != tree.FilePath) pairs.Add(tree.FilePath + "\t" + declared);
                }
            }
        }
        foreach (var pair in pairs) Console.WriteLine(pair);
    }

    static bool IsManaged(string path)
    {
        try { System.Reflection.AssemblyName.GetAssemblyName(path); return true; }
        catch (BadImageFormatException) { return false; }
    }

    static string DeclaringFile(ISymbol symbol)
    {
        if (symbol is IAliasSymbol alias) symbol = alias.Target;
        if (symbol is IMethodSymbol method) symbol = method.ReducedFrom ?? method;
        symbol = symbol.OriginalDefinition;
        switch (symbol.Kind)
        {
            case SymbolKind.NamedType:
            case SymbolKind.Event:
            case SymbolKind.Field:
            case SymbolKind.Method:
            case SymbolKind.Property:
                break;
            default:
                return null;
        }
        // A constructor or a delegate's member that nobody wrote belongs to its type.
        while (symbol != null && symbol.DeclaringSyntaxReferences.IsEmpty) symbol = symbol.ContainingType;
        return symbol?.DeclaringSyntaxReferences
            .Select(reference => reference.SyntaxTree.FilePath)
            .OrderBy(path => path.Length)
            .ThenBy(path => path, StringComparer.Ordinal)
            .First();
    }
}
