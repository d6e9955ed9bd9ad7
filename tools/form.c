/*
 * form.c - what a model's losses tell, see form.h.
 */
#include "form.h"

void form_of(const lks_model *model, struct form *form)
{
    const lks_graph *graph = lks_model_graph(model);
    *form = (struct form){.n_loss = lks_graph_loss_count(graph)};
    for (size_t k = 0; k < form->n_loss && k < FORM_LOSSES; k++)
        form->loss[k] = k == 0 ? "loss" : lks_graph_loss_name(graph, k);
    if (lks_model_classes(model) > 0)
        form->positions = lks_dataset_positions(lks_model_train_data(model));
}
