# Prints tab-separated pairs of paths: a Ruby file that names a constant or method, and the file that defines it.
#
# Usage: ruby ruby.rb FOLDER. The interpreter loads every file below FOLDER's `lib`. Then Ripper finds the names,
# and the loaded classes resolve them. A constant is looked up in the classes around it, innermost first, then in the
# ancestors of the innermost, then in `Object`; only the last name of a path counts. A method counts where its
# receiver is certain: absent, or a constant. Files that are required, loaded or autoloaded count, too. A class
# belongs to the first file that gives it more than nested classes, and a file that reopens it depends on that file.

require "ripper"
require "set"

ROOT = File.realpath(ARGV.fetch(0))
FILES = Dir.glob("**/*.rb", base: ROOT).sort.freeze
INSIDE = FILES.to_h { |file| [File.join(ROOT, file), file] }.freeze

# The files in which a class is opened, in the order in which the interpreter met them.
OPENED = Hash.new { |hash, key| hash[key] = [] }.compare_by_identity

def load_everything
  lib = File.join(ROOT, "lib")
  $LOAD_PATH.unshift(File.directory?(lib) ? lib : ROOT)
  met = TracePoint.new(:class) do |event|
    OPENED[event.self] << [INSIDE[event.path], event.lineno] if INSIDE.key?(event.path)
  end
  top, below = FILES.select { |file| file.start_with?("lib/") }.partition { |file| file.count("/") == 1 }
  met.enable do
    top.each { |file| require File.join(ROOT, file) }
    below.each do |file|
      require File.join(ROOT, file)
    rescue StandardError, ScriptError => e # it serves a gem that is not there, or another interpreter
      warn "#{file}: #{e.class}: #{e.message.lines.first}"
    end
  end
end

# The lines of a file where a class is opened for more than nested classes.
def bodies(tree, found = Set.new)
  return found unless tree.is_a?(Array)

  if %i[class module].include?(tree[0])
    body = tree.last
    statements = body[1].reject { |it| %i[class module void_stmt].include?(it[0]) }
    found << first_line(tree[1]) unless statements.empty? && tree[0] == :module
    found << first_line(tree[1]) if tree[0] == :class && (tree[2] || !statements.empty?)
  end
  tree.each { |it| bodies(it, found) }
  found
end

def first_line(tree)
  return nil unless tree.is_a?(Array)
  return tree[2][0] if tree[0].is_a?(Symbol) && tree[0].start_with?("@")

  tree.each { |it| (line = first_line(it)) && (return line) }
  nil
end

# What the names of one file mean, walked with the classes around them.
class Names
  def initialize(file, tree, homes, pairs)
    @file = file
    @homes = homes
    @pairs = pairs
    walk(tree, [], nil)
  end

  private

  # `nesting` holds the classes around, innermost first; `receiver` is what `self` is, or an instance of it.
  def walk(tree, nesting, receiver)
    return unless tree.is_a?(Array)
    return tree.each { |it| walk(it, nesting, receiver) } unless tree[0].is_a?(Symbol)

    case tree[0]
    when :class, :module then opened(tree, nesting, receiver)
    when :sclass then walk(tree[2], nesting, nil)
    when :def then walk(tree.drop(2), nesting, receiver && [receiver[0], :instance])
    when :defs then walk(tree.drop(4), nesting, nesting.first && [nesting.first, :self])
    when :const_path_ref, :var_ref, :top_const_ref then constant(tree, nesting, receiver)
    when :fcall, :vcall then called(tree, receiver)
    when :command then command(tree, nesting, receiver)
    when :call, :command_call then call(tree, nesting, receiver)
    when :method_add_arg then added(tree, nesting, receiver)
    else tree.drop(1).each { |it| walk(it, nesting, receiver) }
    end
  end

  def opened(tree, nesting, receiver)
    walk(tree[2], nesting, receiver) if tree[0] == :class
    made = open_class(tree[1], nesting)
    depend(@homes[made]) if made && @homes[:opened].include?([@file, first_line(tree[1])])
    walk(tree.last, made ? [made, *nesting] : nesting, made && [made, :self])
  end

  # A class that is opened by its bare name is looked for in the class around it alone.
  def open_class(path, nesting)
    return meaning(path, nesting) unless path[0] == :const_ref

    name = path[1][1].to_sym
    around = nesting.first || Object
    found = around.const_get(name, false) if around.const_defined?(name, false)
    found if found.is_a?(Module)
  rescue StandardError, ScriptError
    nil
  end

  def constant(tree, nesting, receiver)
    if tree[0] == :var_ref && tree[1][0] != :@const
      return
    elsif tree[0] == :const_path_ref && !%i[const_path_ref var_ref top_const_ref].include?(tree[1][0])
      walk(tree[1], nesting, receiver)
    else
      depend(home(tree, nesting))
    end
  end

  def command(tree, nesting, receiver)
    name = tree[1][1]
    text = strings(tree[2])
    requested(name, text) if text
    called(tree, receiver)
    walk(tree[2], nesting, receiver)
  end

  def added(tree, nesting, receiver)
    callee = tree[1]
    if callee[0] == :fcall && (text = strings(tree[2]))
      requested(callee[1][1], text)
    end
    walk(callee, nesting, receiver)
    walk(tree[2], nesting, receiver)
  end

  def call(tree, nesting, receiver)
    walk(tree[1], nesting, receiver)
    target = meaning(tree[1], nesting) if %i[const_path_ref var_ref top_const_ref].include?(tree[1][0])
    if target.is_a?(Module) && tree[3].is_a?(Array) && tree[3][0].to_s.start_with?("@")
      method(target.singleton_class, tree[3][1].to_sym)
    end
    walk(tree[4], nesting, receiver) if tree[4]
  end

  def called(tree, receiver)
    return unless receiver && tree[1].is_a?(Array)

    type, kind = receiver
    method(kind == :self ? type.singleton_class : type, tree[1][1].to_sym)
  end

  def method(type, name)
    return unless type.method_defined?(name) || type.private_method_defined?(name)

    path, = type.instance_method(name).source_location
    depend(INSIDE[path])
  end

  # The literal strings among the arguments of a call.
  def strings(tree, found = [])
    return found unless tree.is_a?(Array)

    found << tree[1] if tree[0] == :@tstring_content
    tree.each { |it| strings(it, found) }
    found
  end

  def requested(name, texts)
    return unless %w[require require_relative load autoload].include?(name) && texts.any?

    roots = name == "require_relative" ? [File.dirname(File.join(ROOT, @file))] : $LOAD_PATH
    paths = roots.flat_map { |root| [File.expand_path(texts.last, root), File.expand_path("#{texts.last}.rb", root)] }
    depend(INSIDE[paths.find { |path| INSIDE.key?(path) }])
  end

  # The file that a constant belongs to.
  def home(tree, nesting)
    owner, name = owner(tree, nesting)
    return unless owner

    value = owner.const_get(name, false)
    return @homes[value] if value.is_a?(Module) && @homes.key?(value) && value.name&.end_with?(name.to_s)

    path, = owner.const_source_location(name, false)
    INSIDE[path]
  rescue StandardError, ScriptError
    nil
  end

  def meaning(tree, nesting)
    owner, name = owner(tree, nesting)
    owner&.const_get(name, false)
  rescue StandardError, ScriptError
    nil
  end

  # The class that holds the constant, and the constant's name.
  def owner(tree, nesting)
    case tree[0]
    when :var_ref, :const_ref
      return unless tree[1][0] == :@const

      name = tree[1][1].to_sym
      inherited = (nesting.first || Object).ancestors + [Object]
      [[*nesting, *inherited].find { |it| it.const_defined?(name, false) }, name]
    when :top_const_ref, :top_const_field
      [Object, tree[1][1].to_sym]
    when :const_path_ref, :const_path_field
      around = meaning(tree[1], nesting)
      return unless around.is_a?(Module)

      name = tree[2][1].to_sym
      [around.ancestors.find { |it| it.const_defined?(name, false) }, name]
    end
  end

  def depend(other)
    @pairs << "#{@file}\t#{other}" if other && other != @file
  end
end

load_everything
trees = FILES.to_h { |file| [file, Ripper.sexp(File.read(File.join(ROOT, file)))] }.compact
opened = trees.flat_map { |file, tree| bodies(tree).map { |line| [file, line] } }.to_set
homes = {}.compare_by_identity
OPENED.each { |type, lines| homes[type] = (lines.find { |it| opened.include?(it) } || lines.first)[0] }
homes[:opened] = opened
pairs = Set.new
trees.each { |file, tree| Names.new(file, tree, homes, pairs) }
puts pairs.sort
