# bash completion of lockstep; installed as completions/lockstep. The options come from the
# program's own help, so that the two cannot differ.

_lockstep() {
    local cur prev command word
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    command=${COMP_WORDS[1]}
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ]; then
        word=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$word --help --version" -- "$cur")
        return
    fi
    case $prev in
    --device | -d) word="cpu gpu ref" ;;
    --resident) word="auto yes no" ;;
    --color) word="auto always never" ;;
    --data) word="train test" ;;
    --regime) word="uniform wide subnormal zeros ties underflow" ;;
    --out | -o)
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --epochs | -e | --steps | --batch | -b | --seed | --expect-accuracy | --checkpoint-every | \
        --threads | --index | -i | --of | --beside | --count | --columns | --op | --schedule | --case | --in | --kernel | --stride | --pad | \
        --groups | --leaf | --repeats | -n | -k | --features | --budget | --limit)
        return
        ;;
    *)
        if [[ $cur != -* || $prev == --weights || $prev == -w || $prev == --log-json || $prev == --tuning || $prev == --merge ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
        fi
        word=$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null |
            sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p')
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
}
complete -o filenames -F _lockstep lockstep
